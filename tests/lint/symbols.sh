#!/bin/sh
# The shared library exports what the public headers declare, and nothing else.
# The environment of a program with rights of its own must not choose what it
# loads, runs or writes: all variables are read by secure_getenv().
# symbols.sh LIBRARY
set -eu
exported=$(nm -D --defined-only "$1" | awk '{ print $3 }' |
    grep -v -e '^_init$' -e '^_fini$' -e '^__' | sort)
declared=$(cat include/beton/*.h | tr '\n' ' ' | grep -o 'BETON_API [^;]*;' |
    grep -o 'beton_[a-z_]*(' | tr -d '(' | sort -u)
if [ "$exported" != "$declared" ]; then
    echo "$1: exported and declared symbols differ:"
    echo "$exported" >/tmp/exported.$$
    echo "$declared" | diff - /tmp/exported.$$ || true
    rm -f /tmp/exported.$$
    exit 1
fi
if grep -rnw 'getenv' --include='*.[ch]' fs loader; then
    echo "getenv() trusts the environment: use secure_getenv()"
    exit 1
fi
