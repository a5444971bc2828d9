# SPDX-License-Identifier: Apache-2.0
"""Common to tests/e2e and tests/python: datasets behind a server."""
import os
import pathlib
import sys


def pytest_configure(config):
    config.addinivalue_line("markers", "quick: one of the tests of make quick")


if os.environ.get("BETON_TEST_REMOTE"):
    sys.path.append(str(pathlib.Path(__file__).parent / "e2e"))
    import elsewhere
    elsewhere.build()
    pytest_collection_modifyitems = elsewhere.skip_local
