#!/bin/sh
# Every environment variable that the sources read is on its manual page, and
# every one on the page is read.
set -eu
page=loader/tools/beton/beton-environment.7
sources='fs loader contrib/python'
bad=0

# complain TEXT
complain() {
    echo "$1"
    bad=1
}

# in_sources PATTERN: matches in C and Python, one per line.
in_sources() {
    grep -rhoE --include='*.[ch]' --include='*.py' -e "$1" $sources
}

# Our own variables, and those of object stores, are string literals of their
# own, for example in a table. Other names stand in a call that reads.
read_variables() {
    {
        in_sources '"(BETON|AWS|AZURE|GCE)_[A-Z0-9_]+"'
        in_sources '(getenv|environ\.get|environment)\([^")]*"[A-Z_]+"'
        in_sources 'environ\["[A-Z_]+"\]'
        in_sources '"[A-Z_]+" in os\.environ'
    } | grep -o '"[A-Z0-9_]*"' | tr -d '"' | sort -u
}

# on_page: names after the macro Ev, in entries and elsewhere.
on_page() {
    awk '{
        for (i = 1; i < NF; i++)
            if ($i == "Ev" || $i == ".Ev")
                print $(i + 1)
    }' "$page" | sort -u
}

# without WORDS: lines that are none of these words.
without() {
    grep -vxF -e "$1" || true
}

for v in $(read_variables | without "$(on_page)"); do
    complain "$page: does not describe $v"
done
for v in $(on_page | without "$(read_variables)"); do
    complain "$page: $v is read nowhere"
done
exit $bad
