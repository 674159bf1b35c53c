"""The notebook that tests of cells share; IPython is imported by those alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

import lakelite

if TYPE_CHECKING:
    from notebooks import Cells


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cells]:
    from notebooks import notebook

    with pytest.MonkeyPatch.context() as patch, notebook(tmp_path_factory.mktemp("notebook"), patch) as cells:
        cells("%lake shop.lake --author ann")
        cells("%%lake\nCREATE TABLE stock (item VARCHAR, amount INTEGER);\nINSERT INTO stock VALUES ('bolt', 40), ('nut', 70), ('washer', 10)")
        yield cells


@pytest.fixture
def cells(shared: Cells) -> Iterator[Cells]:
    """The notebook, with the lake open and no transaction; what a test does to the lake stays."""
    lake = shared.shell._lakelite_notebook.lake
    if lake is None or lake.path != "shop.lake":
        shared("%lake shop.lake --author ann")
    yield shared
    lake = shared.shell._lakelite_notebook.lake
    if lake is not None and lake.connection.in_transaction:
        shared("%lake ROLLBACK")


@pytest.fixture
def bob(shared: Cells) -> Iterator[Any]:
    with lakelite.connect("shop.lake", author="bob", autocommit=True) as con:
        yield con


@pytest.fixture
def con(lake: lakelite.Connection) -> lakelite.Connection:
    """With a table of three rows."""
    lake.execute("create table t (a integer, b varchar); insert into t values (1, 'one'), (2, 'two'), (3, null)")
    return lake
