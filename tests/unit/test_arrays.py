"""storage/arrays: what pyarrow makes of the same values, without pandas."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelite.storage import arrays

KINDS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.bool_(), st.booleans()),
    (pa.int8(), st.integers(-(2**7), 2**7 - 1)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (pa.float32(), st.floats(width=32)),
    (pa.float64(), st.floats()),
    (pa.string(), st.text()),
    (pa.binary(), st.binary()),
    (pa.decimal128(38, 3), st.decimals(min_value=Decimal("-" + "9" * 35), max_value=Decimal("9" * 35), places=3)),
]


@pytest.mark.parametrize(("kind", "values"), KINDS, ids=[str(kind) for kind, _ in KINDS])
@given(data=st.data())
def test_values_are_those_of_pyarrow(kind: pa.DataType, values: st.SearchStrategy[Any], data: st.DataObject) -> None:
    given_values = data.draw(st.lists(st.none() | values, max_size=20))
    made = arrays.of_values(given_values, kind)
    made.validate(full=True)
    wanted = pa.array(given_values, kind)
    assert made.type == kind
    assert made.is_null().equals(wanted.is_null())
    if pa.types.is_floating(kind):  # NaN equals nothing: the bits are compared
        assert made.drop_null().to_numpy().tobytes() == wanted.drop_null().to_numpy().tobytes()
    else:
        assert made.equals(wanted)


def test_kinds_that_are_left_to_pyarrow() -> None:
    """SHOW ALL TABLES has lists, and columns of ENUMs come in codes."""
    assert arrays.of_values([["a"], None], pa.list_(pa.string())).to_pylist() == [["a"], None]
    assert arrays.of_values(["a", None, "a"], pa.dictionary(pa.uint8(), pa.string())).to_pylist() == ["a", None, "a"]


def test_many_values() -> None:
    assert arrays.of_values(["a", None] * 1_000, pa.string()).to_pylist() == ["a", None] * 1_000


@given(st.lists(st.booleans() | st.none(), max_size=40), st.integers(0, 20))
def test_numbers_there_and_back(values: list[bool | None], start: int) -> None:
    """Also of a slice, whose bits do not begin with a byte, and of chunks."""
    missing = np.array([v is None for v in values], dtype=bool)
    truth = np.array([bool(v) for v in values], dtype=bool)
    for plain in (truth, truth.astype(np.int64) * 2**60 + 1):
        made = arrays.of_numpy(plain, missing)
        assert made.null_count == missing.sum()
        assert arrays.to_numpy(made.slice(start)).tolist() == plain[start:].tolist()
        chunks = pa.chunked_array([made.slice(0, start), made.slice(start)])
        assert arrays.to_numpy(chunks).tolist() == plain.tolist()


STATEMENTS = """
CREATE TABLE t (id BIGINT PRIMARY KEY, price DECIMAL(9, 2), name VARCHAR);
INSERT INTO t SELECT range, range, 'n' || range FROM range(10_000);
INSERT INTO t VALUES (-1, 1.5, 'b'), (-2, NULL, NULL) RETURNING *;
UPDATE t SET price = price + 1 WHERE id < 3 RETURNING id;
DELETE FROM t WHERE id = 6 RETURNING *;
MERGE INTO t USING (SELECT 5 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = 'five';
INSERT INTO t (id, name) VALUES (1, 'x') ON CONFLICT DO UPDATE SET name = excluded.name;
BEGIN; INSERT INTO t VALUES (-9, 9, '9'); SELECT * FROM t WHERE id < 0; ROLLBACK;
SELECT count(*) FROM lake.snapshots; SELECT * FROM lake.fragments; SHOW TABLES; DESCRIBE t; DESCRIBE HISTORY t;
SELECT * FROM table_changes('t', 2, 4) LIMIT 3;
CREATE BRANCH b; USE BRANCH b; INSERT INTO t (id) VALUES (77_777); USE BRANCH main; MERGE BRANCH b;
OPTIMIZE t; RESTORE TABLE t TO VERSION AS OF 2; VACUUM; CHECK LAKE;
"""


def test_no_statement_imports_pandas(tmp_path: Path) -> None:
    """pandas is there, since the tests need it; lakelite's own work has no use for it."""
    code = (
        "import sys, lakelite, importlib.util\n"
        "assert importlib.util.find_spec('pandas')\n"
        "with lakelite.connect(sys.argv[1], autocommit=True) as con:\n"
        "    con.executescript(sys.argv[2])\n"
        "print('pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "lake"), STATEMENTS], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("False\n", "")
