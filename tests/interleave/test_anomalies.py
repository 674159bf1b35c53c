"""The anomalies of isolation that the literature names, as the schedules of the Hermitage test suite, at each level.

Adya, "Weak Consistency" (1999): G0 to G2; Bailis et al., "Highly Available Transactions" (2013): OTV, PMP. The table in the guide is
compared with what is seen here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lakelite
from lakelite.resources import folder

LEVELS = ("serializable", "write serializable", "snapshot")
GUIDE = folder("docs") / "concurrency.md"
Three = tuple[Any, Any, Any]


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def three(tmp_path: Path, level: str) -> Iterator[Three]:
    """Three connections with open transactions of that level, on a table of the rows (1, 10) and (2, 20)."""
    with lakelite.connect(tmp_path / "lake", autocommit=True) as con:
        con.execute("CREATE TABLE test (id INTEGER, value INTEGER); INSERT INTO test VALUES (1, 10), (2, 20)")
    made = [lakelite.connect(tmp_path / "lake", autocommit=True, isolation=level) for _ in range(3)]
    for con in made:
        con.execute("BEGIN")
    yield (made[0], made[1], made[2])
    for con in made:
        con.close()


def found(con: Any, where: str = "true") -> list[tuple[int, int]]:
    return sorted(con.execute(f"SELECT id, value FROM test WHERE {where}").fetchall())


def commits(con: Any) -> bool:
    """Whether its COMMIT goes well; else it is a conflict."""
    try:
        con.execute("COMMIT")
    except lakelite.TransactionConflict:
        return False
    return True


def level_of(con: Any) -> str:
    return str(con.isolation)


def content(con: Any) -> list[tuple[int, int]]:
    """What was committed."""
    assert not con.in_transaction
    return found(con)


def g0(t1: Any, t2: Any, t3: Any) -> bool:
    """Dirty write: the writes of two transactions mix."""
    t1.execute("UPDATE test SET value = 11 WHERE id = 1")
    t2.execute("UPDATE test SET value = 12 WHERE id = 1")
    t1.execute("UPDATE test SET value = 21 WHERE id = 2")
    assert commits(t1)
    t2.execute("UPDATE test SET value = 22 WHERE id = 2")
    assert commits(t2) == (level_of(t2) != "snapshot")  # there the first one wins
    return content(t1) not in ([(1, 11), (2, 21)], [(1, 12), (2, 22)])


def g1a(t1: Any, t2: Any, t3: Any) -> bool:
    """Aborted read: what was rolled back is seen."""
    t1.execute("UPDATE test SET value = 101 WHERE id = 1")
    seen = found(t2)
    t1.execute("ROLLBACK")
    return not seen == found(t2) == [(1, 10), (2, 20)]


def g1b(t1: Any, t2: Any, t3: Any) -> bool:
    """Intermediate read: a value that its transaction has changed again is seen."""
    t1.execute("UPDATE test SET value = 101 WHERE id = 1")
    seen = found(t2)
    t1.execute("UPDATE test SET value = 11 WHERE id = 1")
    assert commits(t1)
    return any(value == 101 for _, value in (*seen, *found(t2)))


def g1c(t1: Any, t2: Any, t3: Any) -> bool:
    """Circular information flow: each sees what the other wrote."""
    t1.execute("UPDATE test SET value = 11 WHERE id = 1")
    t2.execute("UPDATE test SET value = 22 WHERE id = 2")
    first, second = found(t1, "id = 2"), found(t2, "id = 1")
    assert commits(t1)
    assert commits(t2) == (level_of(t2) == "snapshot")  # it was shown what the other has changed
    return first == [(2, 22)] and second == [(1, 11)]


def otv(t1: Any, t2: Any, t3: Any) -> bool:
    """Observed transaction vanishes: a transaction's writes are seen, and then not all of them."""
    t1.execute("UPDATE test SET value = 11 WHERE id = 1; UPDATE test SET value = 19 WHERE id = 2")
    t2.execute("UPDATE test SET value = 12 WHERE id = 1")
    assert commits(t1)
    seen = found(t3, "id = 1")
    t2.execute("UPDATE test SET value = 18 WHERE id = 2")
    seen += found(t3, "id = 2")
    assert commits(t2) == (level_of(t2) != "snapshot")
    return not seen == found(t3) == [(1, 10), (2, 20)]


def pmp(t1: Any, t2: Any, t3: Any) -> bool:
    """Predicate-many-preceders: the same condition finds other rows later."""
    first = found(t1, "value = 30")
    t2.execute("INSERT INTO test VALUES (3, 30)")
    assert commits(t2)
    return first != found(t1, "value % 3 = 0")


def p4(t1: Any, t2: Any, t3: Any) -> bool:
    """Lost update: both read the row, both write it, and one does not know of the other."""
    for con in (t1, t2):
        assert found(con, "id = 1") == [(1, 10)]
    for con in (t1, t2):
        con.execute("UPDATE test SET value = 11 WHERE id = 1")
    return commits(t1) and commits(t2)


def g_single(t1: Any, t2: Any, t3: Any) -> bool:
    """Read skew: one row of before, and one of after another transaction."""
    first = found(t1, "id = 1")
    t2.execute("UPDATE test SET value = 12 WHERE id = 1; UPDATE test SET value = 18 WHERE id = 2")
    assert commits(t2)
    seen = first + found(t1, "id = 2")
    t1.execute("DELETE FROM test WHERE value = 20")
    return seen != [(1, 10), (2, 20)]


def g2_item(t1: Any, t2: Any, t3: Any) -> bool:
    """Write skew: both read both rows, and each writes one of them."""
    for con in (t1, t2):
        assert len(found(con, "id IN (1, 2)")) == 2
    t1.execute("UPDATE test SET value = 11 WHERE id = 1")
    t2.execute("UPDATE test SET value = 21 WHERE id = 2")
    return commits(t1) and commits(t2)


def g2(t1: Any, t2: Any, t3: Any) -> bool:
    """Anti-dependency cycle: both find no row for a condition, and each inserts one that the other would have found."""
    for con in (t1, t2):
        assert found(con, "value % 3 = 0") == []
    t1.execute("INSERT INTO test VALUES (3, 30)")
    t2.execute("INSERT INTO test VALUES (4, 42)")
    return commits(t1) and commits(t2)


ANOMALIES: dict[str, Callable[[Any, Any, Any], bool]] = {
    "G0": g0, "G1a": g1a, "G1b": g1b, "G1c": g1c, "OTV": otv, "PMP": pmp, "P4": p4, "G-single": g_single, "G2-item": g2_item, "G2": g2,
}  # fmt: skip
AT_SNAPSHOT = {"G2-item", "G2"}  # write skew is what this level allows


@pytest.mark.parametrize("name", ANOMALIES)
def test_anomaly(name: str, three: Three, level: str) -> None:
    assert ANOMALIES[name](*three) == (level == "snapshot" and name in AT_SNAPSHOT)


def test_the_guide_tells_the_same() -> None:
    rows = re.findall(r"^\| ([\w-]+): [^|]+\| (\w+) \| (\w+) \| (\w+) \|$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    told = {row[0]: row[1:] for row in rows if row[0] in ANOMALIES}
    assert told == {name: ("no", "no", "yes" if name in AT_SNAPSHOT else "no") for name in ANOMALIES}
