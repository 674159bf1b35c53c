"""The fork server, one for each test file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from crashing import Server


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()
