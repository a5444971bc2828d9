#!/bin/sh
# Check that every option is in its manual page, and that every option of a
# page exists. If mandoc is installed, check that the pages are well-formed.
#
#   docs.sh BUILD
set -eu
build=$1
bad=0

# Options that every program has. beton(1) describes them for its commands.
common='help version options quiet verbose storage-options'

# complain TEXT
complain() {
    echo "$1"
    bad=1
}

# listed PAGE MACRO: the long names of `.It MACRO NAME ...` lines, without
# dashes.
listed() {
    if [ "$2" = Fl ]; then
        sed -n 's/^\.It Fl //p' "$1" | tr ' ' '\n' |
            sed -n 's/^--*\([a-z][a-z-][a-z-]*\)$/\1/p' | sort -u
    else
        sed -n "s/^\.It $2 \([a-z_][a-z_][a-z_]*\).*/\1/p" "$1" | sort -u
    fi
}

# has PAGE MACRO OPTIONS: the page describes these options.
has() {
    for o in $3; do
        listed "$1" "$2" | grep -qx -e "$o" ||
            complain "$1: does not describe $o"
    done
}

# has_only PAGE MACRO OPTIONS: the page describes no others.
has_only() {
    for o in $(listed "$1" "$2"); do
        echo $3 | tr ' ' '\n' | grep -qx -e "$o" ||
            complain "$1: $o is not an option"
    done
}

# same PAGE MACRO OPTIONS
same() {
    has "$1" "$2" "$3"
    has_only "$1" "$2" "$common $3"
}

# own COMMAND: its options but the common ones.
own() {
    for o in $("$build/beton" "$1" --options); do
        case " $common " in
        *" $o "*) ;;
        *) echo "$o" ;;
        esac
    done
}

# Each command has a page, in the directory of its sources.
every=
for c in $("$build/beton" --commands); do
    every="$every $(own "$c")"
    [ "$c" != help ] || continue
    page=loader/tools/$c/beton-$c.1
    [ -e "$page" ] || page=loader/tools/beton/beton-$c.1
    if [ -e "$page" ]; then
        same "$page" Fl "$(own "$c")"
    else
        complain "$page: missing"
    fi
done
has loader/tools/beton/beton.1 Fl 'commands help version quiet verbose storage-options'
has_only loader/tools/beton/beton.1 Fl "commands $common $every"
same loader/tools/mkfs/mkfs.beton.8 Fl "$("$build/mkfs.beton" --options)"
same loader/tools/fsck/fsck.beton.8 Fl "$("$build/fsck.beton" --options)"
same fs/mount/daemon/betonfs.8 Cm "$("$build/betonfs" --options)"
has fs/mount/daemon/betonfs.8 Fl 'help version options quiet verbose'
for op in loader/pipeline/ops/*.c; do
    name=$(basename "$op" .c)
    grep -q "^\.It Cm $name\b" loader/pipeline/ops/beton-operations.7 ||
        complain "loader/pipeline/ops/beton-operations.7: does not describe $name"
done
for page in $(find fs loader -name "*.[1578]" | sort); do
    [ -e "$page" ] || continue
    # In a table, mdoc takes these words for macros, and prints nothing.
    ! grep -HnE ' Ta (Ad|An|At|In|No) [a-z]' "$page" || bad=1
    ! command -v mandoc >/dev/null || mandoc -Tlint -W warning "$page" ||
        bad=1
    for name in $(sed -nE 's/^\.Xr ((mkfs\.|fsck\.)?beton[a-z-]*) ([1578]).*/\1.\3/p' \
        "$page" | sort -u); do
        [ "$(find fs loader -name "$name")" ] ||
            complain "$page: there is no page $name"
    done
done
# contrib/HACKING.md names files, directories and rooms that exist. Capital
# letters and * stand for any name.
for name in $(grep -oE '`(fs|loader|include|tests|contrib)/[a-z0-9_./-]+`' \
    contrib/HACKING.md | tr -d '`' | sort -u); do
    [ -e "$name" ] || [ -e "$name.c" ] || [ -e "$name.h" ] ||
        complain "contrib/HACKING.md: there is no $name"
done
exit $bad
