"""What a notebook keeps of a result is what the connection gave."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path
from uuid import UUID

import pytest

import lakelite
from lakelite.interfaces.notebook import kept as keeping
from lakelite.interfaces.notebook.kept import kept


def test_values_are_exact_while_other_threads_ask_too(tmp_path: Path) -> None:
    """DuckDB's switch for that is one of the whole connection."""
    query = "SELECT '12:00:00+05'::TIMETZ AS t, 99999999999999999999999999999999999999::HUGEINT AS h, '0101'::BIT AS b FROM range(30000)"
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con:
        con.execute("CREATE TABLE u (i INTEGER, k UUID, b BOOLEAN)")
        plain = con.execute(query).to_arrow().schema
        wrong: list[object] = []

        def look(number: int) -> None:
            try:
                for _ in range(6):
                    if number % 2:
                        table = con.execute(query).to_arrow()
                        wrong.extend([table.schema] if table.schema != plain else [])
                        con.execute("INSERT INTO u VALUES (1, '00000000-0000-0000-0000-000000000001', true)")
                    else:
                        rows = kept(con.execute(query)).ends(2)
                        wrong.extend(row for row in (*rows.first, *rows.last) if tuple(map(str, row)) != ("12:00:00+05:00", "9" * 38, "0101"))
            except BaseException as error:
                wrong.append(error)

        threads = [threading.Thread(target=look, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert con.execute("SELECT DISTINCT * FROM u").fetchall() == [(1, UUID(int=1), True)]


def test_many_rows_are_kept_in_a_file_and_are_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    query = """
        SELECT range AS n, 'name ' || range AS s, range::HUGEINT * 10 ** 20::HUGEINT AS h, [range, NULL] AS l, {'a': range % 3 = 0} AS t, ('{"a": ' || range || '}')::JSON AS j,
            ['x', 'y'][range % 2 + 1]::ENUM('x', 'y') AS e, TIMESTAMPTZ '2024-02-29 12:00:00+00' + to_seconds(range) AS z, NULL AS nothing,
            uuid '00000000-0000-0000-0000-000000000001' AS u, '101'::BIT AS b, INTERVAL 1 MONTH * range AS i
        FROM range(300000)
    """
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with lakelite.connect(autocommit=True) as con:
        in_memory = keeping.kept(con.execute(query))
        monkeypatch.setattr(keeping, "IN_MEMORY_BYTES", 1000)
        made: list[int] = []
        of_a_file = keeping._in_a_file
        monkeypatch.setattr(keeping, "_in_a_file", lambda *given: (made.append(1), of_a_file(*given))[1])
        in_a_file = keeping.kept(con.execute(query))
    assert made == [1]
    assert list(tmp_path.iterdir()) == [], "it has no name"
    assert (in_a_file.columns, in_a_file.count) == (in_memory.columns, in_memory.count)
    assert in_a_file.exact.equals(in_memory.exact)
    assert in_a_file.ends(6) == in_memory.ends(6)
    for one in (in_memory, in_a_file):
        assert one.opened().take(lambda cursor: cursor.fetchone())[1] == "name 0"
