#!/bin/sh
# The shared library exports what the public headers declare, and nothing else;
# all of it in the symbol version of its soname (loader/libbeton.map).
# The environment of a program with rights of its own must not choose what it
# loads, runs or writes: all variables are read by secure_getenv().
# A function has one definition: with a second one in another archive, the
# linker takes whichever comes first.
# symbols.sh LIBRARY ARCHIVE...
set -eu
library=$1
shift
twice=$(nm --defined-only "$@" 2>/dev/null |
    awk '$2 == "T" && $3 != "main" { print $3 }' | sort | uniq -d)
if [ "$twice" ]; then
    echo "defined twice in $*:" $twice
    exit 1
fi
set -- "$library"
exported=$(nm -D --defined-only --with-symbol-versions "$1" |
    awk '$2 != "A" { print $3 }' | grep -v -e '^_init$' -e '^_fini$' -e '^__' |
    sed 's/@@*/ /' | sort)
unversioned=$(echo "$exported" | grep -v ' BETON_[0-9]*$' || true)
if [ "$unversioned" ]; then
    echo "$1: exported without a version of loader/libbeton.map: $unversioned"
    exit 1
fi
exported=$(echo "$exported" | cut -d' ' -f1)
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
