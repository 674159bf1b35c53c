"""The public compliance suite of PEP 249 (`dbapi-compliance`), whole. What it leaves to the driver is answered here."""

from __future__ import annotations

import tempfile
from typing import Any

import pytest

import lakelite

dbapi20 = pytest.importorskip("dbapi20", reason="the package dbapi-compliance is not installed (extra: test)")


class TestCompliance(dbapi20.DatabaseAPI20Test):
    """Every test of the suite, on a lake of its own."""

    driver = lakelite

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.connect_args = (f"{folder.name}/lake",)
        self.opened: list[lakelite.Connection] = []
        self.addCleanup(lambda: [con.close() for con in self.opened])

    def _connect(self) -> Any:
        """Connections that a test leaves open are closed when it is over."""
        con = super()._connect()
        self.opened.append(con)
        return con

    def test_nextset(self) -> None:
        """PEP 249: "This method is optional since not all databases support multiple result sets"; an AttributeError is the preferred way."""
        with pytest.raises(AttributeError):
            _ = self._connect().cursor().nextset

    def test_callproc(self) -> None:
        """PEP 249: "This method is optional since not all databases provide stored procedures"; an AttributeError is the preferred way."""
        with pytest.raises(AttributeError):
            _ = self._connect().cursor().callproc

    def test_setoutputsize(self) -> None:
        """PEP 249: "Implementations are free to have this method do nothing"."""
        cursor = self._connect().cursor()
        cursor.setoutputsize(1)
        cursor.setoutputsize(1, 0)
        assert cursor.execute("select repeat('x', 5000)").fetchone() == ("x" * 5000,)

    def test_non_idempotent_close(self) -> None:
        """PEP 249 asks for an error where an operation is attempted with a closed connection; its close() is "close the connection now", which
        then has nothing left to do. The suite itself says that "reasonable persons differ" about this test."""
        con = self._connect()
        con.close()
        con.close()
        with pytest.raises(lakelite.Error):
            con.cursor()
