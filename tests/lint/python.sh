#!/bin/sh
# ruff checks all Python files, and mypy the types of the package, where they are
# installed. contrib/python/pyproject.toml has the rules of both.
set -eu
config=contrib/python/pyproject.toml

if command -v ruff >/dev/null; then
    # Most programs of contrib have no suffix.
    files=$(git ls-files contrib tests | xargs grep -lE '^#!.*python' |
        grep -v '\.py$' || true)
    ruff check --quiet --no-cache --config "$config" contrib tests $files
else
    echo "python: skipped: no ruff"
fi
# Without NumPy beside it, mypy takes each array for a mistake.
if mypy -c 'import numpy' --cache-dir "${BUILD:-build}/mypy" >/dev/null 2>&1; then
    mypy --no-error-summary --config-file "$config" --cache-dir "${BUILD:-build}/mypy" \
        contrib/python/betonfs
else
    echo "python: skipped: no mypy with NumPy"
fi
