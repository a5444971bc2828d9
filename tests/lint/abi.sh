#!/bin/sh
# The shared library keeps its ABI: programs that were linked with the library of
# include/libbeton.abi run with this one. contrib/HACKING.md lists the changes
# that the soname allows; `make abi` writes the file again after one of them.
#
#   abi.sh LIBRARY [BASELINE]    compare; SAN and CC are those of the build
#   abi.sh --write LIBRARY       print the ABI
set -eu
here=$(dirname "$0")
machine='s/.* architecture=.\([^ ]*\). .*/\1/p;1q'

# skip REASON
skip() {
    echo "abi: skipped: $1"
    exit 0
}

# Neither lines nor paths of the source: they differ between machines.
write() {
    abidw --exported-interfaces-only --no-show-locs --no-corpus-path \
        --no-comp-dir-path --no-elf-needed --no-parameter-names \
        --type-id-style hash --headers-dir "$here/../../include/beton" \
        --drop-private-types --drop-undefined-syms "$1"
}

if [ "$1" = --write ]; then
    write "$2"
    exit
fi
library=$1
baseline=${2:-$here/../../include/libbeton.abi}
for tool in abidw abidiff; do
    command -v $tool >/dev/null || skip "no $tool (package abigail-tools)"
done
[ -z "${SAN:-}" ] || skip "sanitizers change types (SAN=$SAN)"
case $("${CC:-cc}" --version) in
*clang*) skip 'the baseline is that of gcc, and clang describes types otherwise' ;;
esac
now=$(mktemp)
trap 'rm -f "$now"' EXIT
write "$library" >"$now"
grep -q '<abi-instr' "$now" || skip "$library has no debug information"
old=$(sed -n "$machine" "$baseline")
new=$(sed -n "$machine" "$now")
[ "$old" = "$new" ] || skip "the baseline is of $old, the library of $new"
abidiff --no-added-syms "$baseline" "$now" >"$now.diff" || {
    cat "$now.diff"
    rm -f "$now.diff"
    echo "$library: the ABI differs from $baseline. If contrib/HACKING.md allows the"
    echo "change, run make abi. Otherwise also raise the number of the soname."
    exit 1
}
rm -f "$now.diff"
