#!/bin/sh
# All places that contain the version agree with VERSION in the Makefile, and the
# changelog has a section for it. contrib/RELEASING.md lists the places.
# version.sh [DIRECTORY]
set -eu
cd "${1:-.}"
bad=0
want=$(sed -n 's/^VERSION := //p' Makefile)

# expect PLACE FOUND
expect() {
    [ "$2" = "$want" ] || { echo "$1: version \`$2', but the Makefile has $want"; bad=1; }
}

[ -n "$want" ] || { echo "Makefile: no line VERSION := N.N.N"; exit 1; }
expect include/beton/beton.h "$(sed -n 's/^#define BETON_VERSION_\(MAJOR\|MINOR\|PATCH\) *\([0-9]*\)$/\2/p' \
    include/beton/beton.h | tr '\n' . | sed 's/\.$//')"
# Tests compare what programs print with the text of the version.
for f in $(grep -rlE '(betonfs|beton|mkfs\.beton|"version",) "?[0-9]+\.[0-9]+\.[0-9]+' tests/e2e tests/python --include='*.py'); do
    for v in $(grep -oE '(betonfs|beton|mkfs\.beton|"version",) "?[0-9]+\.[0-9]+\.[0-9]+' "$f" |
        grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | sort -u); do
        expect "$f" "$v"
    done
done
# Files of packages, where there are some.
if [ -e contrib/debian/changelog ]; then
    expect contrib/debian/changelog \
        "$(sed -n '1s/^[^(]*(\([0-9.]*\).*/\1/p' contrib/debian/changelog)"
fi
for f in $(ls contrib/*.spec contrib/*/*.spec 2>/dev/null); do
    expect "$f" "$(sed -n 's/^Version: *//p' "$f")"
done
grep -q "^## \[\{0,1\}$want\b" contrib/CHANGELOG.md ||
    { echo "contrib/CHANGELOG.md: no section for $want"; bad=1; }
exit $bad
