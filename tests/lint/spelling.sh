#!/bin/sh
# Check the spelling of tracked files, in American English. .codespellrc has the
# options.
#
#   spelling.sh [FILE...]
set -eu
if ! command -v codespell >/dev/null; then
    echo "spelling: skipped, because codespell is not installed"
    exit 0
fi
[ $# = 0 ] || exec codespell "$@"
if ! git ls-files >/dev/null 2>&1; then
    echo "spelling: skipped, because this is no git checkout"
    exit 0
fi
git ls-files -z | xargs -0 codespell
