#!/bin/sh
# Every header compiles alone, the public ones as C++ too.
# headers.sh CC CXX
set -eu
flags='-fsyntax-only -Wall -Wextra -Werror -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DFUSE_USE_VERSION=31 -Iinclude -I.'
fuse=$(pkg-config --cflags fuse3 2>/dev/null || true)
bad=0
for h in $(find include fs loader -name '*.h' | sort); do
    printf '#include "%s"\n' "${h#include/}" |
        $1 -std=gnu11 $flags $fuse -xc - || { echo "$h: does not compile alone"; bad=1; }
done
for h in $(find include -name '*.h' | sort); do
    printf '#include "%s"\n' "${h#include/}" |
        $2 $flags -xc++ - || { echo "$h: does not compile as C++"; bad=1; }
done
exit $bad
