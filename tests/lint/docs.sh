#!/bin/sh
# Every option is in its manual page, every one in the page exists, and the
# pages are well-formed where mandoc is there to say so.   docs.sh BUILD
set -eu
bad=0

# check PAGE MACRO COMMAND...: the options that the command lists are those
# that the page's `.It MACRO NAME` lines tell.
check() {
    page=$1 macro=$2
    shift 2
    listed=$("$@" | sort -u)
    told=$(sed -n "s/^\.It $macro \([a-z_-]*\).*/\1/p" "$page" |
        sed 's/^-*//' | sort -u)
    for o in $listed; do
        echo "$told" | grep -qx -e "$o" ||
            { echo "$page: says nothing of $o ($*)"; bad=1; }
    done
    for o in $told; do
        echo "$known $listed" | tr ' ' '\n' | grep -qx -e "$o" ||
            { echo "$page: $o is no option ($*)"; bad=1; }
    done
}

known='help version options f d s h V o json'
check fs/mkfs.beton.8 'Fl -' "$1/mkfs.beton" --options
check fs/betonfs.8 'Cm' "$1/betonfs" --options
for c in $("$1/beton" --commands); do
    for o in $("$1/beton" "$c" --options); do
        grep -q "^\.It Fl -$o\b" fs/beton.1 ||
            { echo "fs/beton.1: says nothing of $c --$o"; bad=1; }
    done
done
for op in loader/ops/*.c; do
    name=$(basename "$op" .c)
    grep -q "^\.It.*\b$name\b" loader/beton-transforms.7 ||
        { echo "loader/beton-transforms.7: says nothing of $name"; bad=1; }
done
for page in fs/*.[1578] loader/*.[1578]; do
    [ -e "$page" ] || continue
    ! command -v mandoc >/dev/null || mandoc -Tlint -W warning "$page" || bad=1
done
exit $bad
