"""What a notebook keeps of a result is what the connection gave."""

from __future__ import annotations

import threading
from pathlib import Path
from uuid import UUID

import lakelite
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
