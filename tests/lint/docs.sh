#!/bin/sh
# Every option is in its manual page, every one in the page exists, and the
# pages are well-formed where mandoc is there to say so.   docs.sh BUILD
set -eu
build=$1
bad=0

# Options that every program has and no table lists.
common='help version options'

# complain TEXT
complain() {
    echo "$1"
    bad=1
}

# told PAGE MACRO: the names of `.It MACRO NAME ...` lines, without dashes;
# single letters are not in the tables.
told() {
    sed -n "s/^\.It $2 -*\([a-z_-][a-z_-]*\).*/\1/p" "$1" | grep '..' | sort -u
}

# same PAGE MACRO OPTIONS: the page tells those options and no others.
same() {
    page=$1 macro=$2 listed=$3
    for o in $listed; do
        told "$page" "$macro" | grep -qx -e "$o" ||
            complain "$page: says nothing of $o"
    done
    for o in $(told "$page" "$macro"); do
        echo $common $listed | tr ' ' '\n' | grep -qx -e "$o" ||
            complain "$page: $o is no option"
    done
}

# beton doctor has a page of its own.
all_of_beton() {
    for c in $("$build/beton" --commands); do
        [ "$c" = doctor ] || "$build/beton" "$c" --options
    done | sort -u
    echo commands
}

same loader/tools/mkfs/mkfs.beton.8 Fl "$("$build/mkfs.beton" --options)"
same fs/mount/betonfs.8 Cm "$("$build/betonfs" --options)"
same loader/tools/beton/beton.1 Fl "$(all_of_beton)"
same loader/tools/doctor/beton-doctor.1 Fl "$("$build/beton" doctor --options)"
for op in loader/ops/*.c; do
    name=$(basename "$op" .c)
    grep -q "^\.It.*\b$name\b" loader/graph/beton-transforms.7 ||
        complain "loader/graph/beton-transforms.7: says nothing of $name"
done
for page in $(find fs loader -name "*.[1578]" | sort); do
    [ -e "$page" ] || continue
    ! command -v mandoc >/dev/null || mandoc -Tlint -W warning "$page" ||
        bad=1
done
exit $bad
