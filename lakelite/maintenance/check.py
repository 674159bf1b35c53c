"""CHECK LAKE: whether files, row counts, deletion vectors, compositions and the catalog agree. Reads only, and repairs nothing.

    catalog         pages, values and indexes, by SQLite; rows that contradict each other
    fragments       each kept file or inline fragment: there, of its size and SHA-256, readable, with its number of rows
    rows            what the definition of each table promises, and the filters of its keys (check_rows.py)
    vectors         each kept version: CRC, range, cardinality; a newer one never marks less
    partitions      every row of a fragment of the head that is said to hold one is of it
    compositions    they tile the output, and each output row has the row id of the source row that it is said to be
    orphans         files that no fragment names and no living session may still commit

One fragment after the other: memory follows the largest compaction's output, not the lake.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lakelite import composition, deletion
from lakelite.catalog.store import Catalog
from lakelite.composition import Composition, Run, Unplaced
from lakelite.contents import TableState
from lakelite.errors import Error, InternalError
from lakelite.maintenance import check_rows
from lakelite.maintenance.findings import RESTORE, RESTORE_FILE, CatalogIndex, Finding, guarded
from lakelite.maintenance.vacuum import orphans
from lakelite.model import ROW_ID_FIELD, Fragment, Table, literal
from lakelite.storage import arrays
from lakelite.storage.engine import Engine
from lakelite.storage.files import LakePaths
from lakelite.storage.inline import rows_of
from lakelite.storage.verified import verified_file
from lakelite.transaction.execution import Execution

if TYPE_CHECKING:
    from numpy.typing import NDArray

_INDEX = re.compile(r"(?:missing from|entries in) index (\w+)")
COLUMNS = ("severity", "object", "finding", "what_to_do")


def findings(execution: Execution) -> list[Finding]:
    """Everything that is wrong, where the catalog is not damaged.

    What VACUUM removes meanwhile is no finding: the snapshot that `execution` sees is pinned.
    """
    catalog, paths, engine, head = execution.catalog, execution.paths, execution.engine, execution.view.snapshot_id
    found = contradictions(catalog)
    fragments = {row[0]: Fragment(*(*row[:8], bool(row[8]))) for row in catalog.rows("kept_fragments")}
    damaged: set[int] = set()
    for fragment in fragments.values():
        for finding in _of_fragment(catalog, paths, engine, fragment):
            damaged.add(fragment.fragment_id)
            found.append(finding)
    found += dict.fromkeys(check_rows.findings(execution, damaged))  # a file may be found on several branches
    found += _of_vectors(catalog)
    found += _of_compositions(catalog, engine, head, {k: f for k, f in fragments.items() if k not in damaged})
    found += [
        Finding("info", f"data/{f.table_id}/{f.file_name}", "no fragment names this file", "VACUUM removes it", f) for f in orphans(catalog, paths)[0]
    ]
    return found


def damage(catalog: Catalog) -> Iterator[Finding]:
    """What SQLite finds in the pages, values and indexes of the catalog; an index is made anew from its table."""
    lines = (line for row in catalog.rows("damage") for line in str(row[0]).splitlines())
    said = [line for line in lines if not line.startswith("*** in database ")]  # what is wrong with pages stands in one row, below this
    of_index = dict.fromkeys(found[1] for one in said if (found := _INDEX.search(one)))
    for index in of_index:
        yield Finding(
            "error", f"catalog index {index}", "it does not hold the rows of its table", "CHECK LAKE REPAIR makes it anew", CatalogIndex(index)
        )
    yield from (Finding("error", "the catalog", one, RESTORE) for one in said if not _INDEX.search(one))


@contextmanager
def told_as_damage(catalog: Catalog) -> Iterator[None]:
    """A block in which what looks like a bug is the catalog's fault where that is damaged: it holds what no version of lakelite writes.

    InternalError instead of errors of Python that are no one else's. A catalog is not looked at as a whole before it is used, if it is large.
    """
    try:
        yield
    except Error:
        raise
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
        wrong = next(iter([*damage(catalog), *contradictions(catalog)]), None)
        if wrong is None:
            raise
        raise InternalError(
            f"the catalog is damaged: {wrong.object}: {wrong.finding}", hint="CHECK LAKE says all that is wrong; restore the lake from a copy"
        ) from error


def contradictions(catalog: Catalog) -> list[Finding]:
    """Rows of the catalog that contradict each other, which can be asked also where no version can be read."""
    rows = catalog.rows("misshapen") or [row for query in ("contradictions", "strays", "histories") for row in catalog.rows(query)]
    return [Finding("error", name, what, RESTORE) for name, what in rows]


# Fragments.


def _of_fragment(catalog: Catalog, paths: LakePaths, engine: Engine, fragment: Fragment) -> list[Finding]:
    name = f"fragment {fragment.fragment_id}" if fragment.path is None else f"data/{fragment.table_id}/{fragment.path}"
    todo = RESTORE if fragment.path is None else RESTORE_FILE

    def looking() -> Iterator[Finding]:
        wrong = _wrong_inline(catalog, fragment) if fragment.path is None else _wrong_file(catalog, paths, engine, fragment)
        if wrong is not None:
            yield Finding("error", name, wrong, todo)

    return _while_kept(catalog, [fragment.fragment_id], name, todo, looking())


def _while_kept(catalog: Catalog, fragment_ids: Iterable[int], name: str, todo: str, looking: Iterable[Finding]) -> list[Finding]:
    """As `guarded`, for a look at fragments that the session does not hold: nothing, if VACUUM took one of them meanwhile."""
    found = list(guarded(name, todo, looking))
    return found if found and all(catalog.row("is_kept", fragment_id=one)[0] for one in fragment_ids) else []


def _wrong_inline(catalog: Catalog, fragment: Fragment) -> str | None:
    ipc = catalog.inline_rows(fragment.fragment_id)
    if len(ipc) != fragment.size_bytes:
        return f"it has {len(ipc)} bytes, the catalog says {fragment.size_bytes}"
    return _told_ids(f"f{ROW_ID_FIELD}" in rows_of(fragment, ipc).column_names, fragment)


def _wrong_file(catalog: Catalog, paths: LakePaths, engine: Engine, fragment: Fragment) -> str | None:
    path = verified_file(paths, fragment)
    rows = engine.run(f"SELECT num_rows FROM parquet_file_metadata({literal(str(path))})")[0][0]
    if rows != fragment.row_count:
        return _counted(rows, fragment)
    ids = engine.run(f"SELECT count(*) FROM parquet_schema({literal(str(path))}) WHERE field_id = {ROW_ID_FIELD}")[0][0]
    is_adopted = catalog.row("is_adopted", fragment_id=fragment.fragment_id)[0]  # its columns mean what they meant to whoever wrote it
    return None if is_adopted else _told_ids(bool(ids), fragment)


def _told_ids(is_there: bool, fragment: Fragment) -> str | None:
    if is_there == fragment.has_row_ids:
        return None
    return f"it has {'' if is_there else 'no '}row ids, the catalog says {'none' if is_there else 'some'}"


def _counted(rows: int, fragment: Fragment) -> str:
    return f"it holds {rows} rows, the catalog says {fragment.row_count}"


# Deletion vectors.


def _of_vectors(catalog: Catalog) -> Iterator[Finding]:
    older: tuple[tuple[int, int], deletion.DeletionVector] | None = None
    for fragment_id, born, branch_id, row_count in catalog.rows("kept_vectors"):
        name = f"deletion vector of fragment {fragment_id}, version {born}"
        version = catalog.rows("vector_version", fragment_id=fragment_id, born=born)
        if not version:  # VACUUM took it meanwhile
            continue
        try:
            vector = deletion.decode(deletion.Encoded(*version[0]), born)
        except InternalError as error:
            yield Finding("error", name, error.message, RESTORE)
            continue
        if row_count is None or vector.row_count != row_count:
            said = "there is no such fragment" if row_count is None else f"its fragment has {row_count}"
            yield Finding("error", name, f"it is of {vector.row_count} rows, but {said}", RESTORE)
        if older is not None and older[0] == (fragment_id, branch_id) and not older[1].positions <= vector.positions:
            yield Finding("error", name, f"it lacks rows that version {older[1].born} had marked: deleted rows came back", RESTORE)
        older = ((fragment_id, branch_id), vector)


# Compositions.


def _of_compositions(catalog: Catalog, engine: Engine, head: int, fragments: Mapping[int, Fragment]) -> Iterator[Finding]:
    """`fragments`: those that can be read."""
    for output, _, born in catalog.rows("kept_compactions"):
        if born > head or output not in fragments:
            continue
        name = f"composition of fragment {output}"
        yield from _while_kept(catalog, [output], name, RESTORE, _of_composition(catalog, engine, name, fragments[output], born, fragments))


def _without_columns(table_id: int) -> Table:
    """What stands for a table where only row ids are read, also for one that was dropped."""
    return Table(table_id, 0, "", f"#{table_id}", ())


def _of_composition(catalog: Catalog, engine: Engine, name: str, output: Fragment, born: int, fragments: Mapping[int, Fragment]) -> Iterator[Finding]:
    made = catalog.compositions(_without_columns(output.table_id), born - 1, born).get(output.fragment_id)
    if made is None:
        return
    composition.check(made, output.row_count)
    ids = _row_ids(catalog, engine, output)
    for run in made.runs:
        source = fragments.get(run.source_fragment_id)
        if source is not None:  # else it has expired, or is a finding of its own
            looking = _of_source(catalog, engine, name, made, output, ids, source, run)
            yield from _while_kept(catalog, [output.fragment_id, source.fragment_id], name, RESTORE, looking)


def _of_source(
    catalog: Catalog, engine: Engine, name: str, made: Composition, output: Fragment, ids: NDArray[Any], source: Fragment, run: Run
) -> Iterator[Finding]:
    """Whether the rows of one of the sources are where the composition says. `ids`: the row id at each position of the output."""
    import numpy as np

    if source.table_id != output.table_id or source.row_count != run.physical_count:
        wrong = f"its source {source.fragment_id} has {source.row_count} rows, the composition says {run.physical_count}"
        yield Finding("error", name, wrong, RESTORE)
        return
    there = _row_ids(catalog, engine, source)
    try:
        alive, places = made.place(source.fragment_id, np.arange(source.row_count, dtype=np.int64))
    except Unplaced as error:
        yield Finding("error", name, str(error), RESTORE)
        return
    different = int(np.count_nonzero(ids[places] != there[alive]))
    if different:
        wrong = f"{different} of the {run.live_count} rows from fragment {source.fragment_id} are other rows in the output"
        yield Finding("error", name, wrong, RESTORE)


def _row_ids(catalog: Catalog, engine: Engine, fragment: Fragment) -> NDArray[Any]:
    """The row id at each position."""
    import numpy as np

    if fragment.path is None:
        return _inline_row_ids(catalog, fragment)
    scan = engine.addressed(TableState(_without_columns(fragment.table_id), {fragment.fragment_id: fragment}, {}), [fragment])
    found = engine.work.execute(
        f"SELECT {scan.position} AS at, coalesce({scan.row_id}, {fragment.first_row_id} + {scan.position}) AS id FROM ({scan.sql})"
    ).fetchnumpy()
    ids = np.zeros(fragment.row_count, dtype=np.int64)
    ids[found["at"]] = found["id"]
    return ids


def _inline_row_ids(catalog: Catalog, fragment: Fragment) -> NDArray[Any]:
    """From the rows themselves: the engine's cache keeps them as the table's columns are stored, which are not known here."""
    import numpy as np
    import pyarrow.compute as pc

    rows = rows_of(fragment, catalog.inline_rows(fragment.fragment_id))
    implied = arrays.of_numpy(np.arange(fragment.row_count, dtype=np.int64) + fragment.first_row_id)
    name = f"f{ROW_ID_FIELD}"
    return arrays.to_numpy(pc.coalesce(rows.column(name), implied) if name in rows.column_names else implied)
