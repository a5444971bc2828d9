#!/bin/sh
# All C files have the form of .clang-format. Another version of clang-format
# breaks some lines elsewhere, so only that of CONTRIBUTING counts.
set -eu
version=14

if ! clang-format --version 2>/dev/null | grep -q "version $version\."; then
    echo "format: skipped: no clang-format $version"
    exit
fi
files=$(git ls-files '*.c' '*.h' 2>/dev/null)
[ ! "$files" ] || clang-format --dry-run --Werror $files
