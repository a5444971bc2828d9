#!/bin/sh
# No test imports another. ruff checks all Python files, and mypy the types of the
# package, where they are installed. contrib/python/pyproject.toml has their rules.
set -eu
# Helpers of several tests are modules of their own.
if grep -rnE '^ *(from|import) test_' tests --include='*.py'; then
    echo "python: a test imports another test" >&2
    exit 1
fi
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
