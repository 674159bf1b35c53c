"""What the tests of SQL share: a lake that statements are refused on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import lakelite


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakelite.Connection]:
    """A lake with rows in files and inline, with deletions; each test leaves it as it was."""
    con = lakelite.connect(str(tmp_path_factory.mktemp("bad") / "lake"), autocommit=True)
    con.execute(
        "create table t (a integer not null, b varchar default 'x', d decimal(5, 2)); create schema s; create table s.u (k bigint, v varchar)"
    )
    con.execute("insert into t values (1, 'one', 1.5), (2, 'two', null); insert into s.u select range, 'v' || range from range(2000)")
    con.execute("insert into t values (3, 'three', 0); delete from t where a = 3; delete from s.u where k < 5")
    yield con
    con.close()
