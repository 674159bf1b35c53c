"""One statement for many parameter sets: which of them are run together, and which one an error belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import duckdb

from lakelite.errors import DataError, Error, IntegrityError
from lakelite.language import statements as st
from lakelite.mapping.ours import reraise
from lakelite.transaction.execution import Call
from lakelite.transaction.nameable import nameable

if TYPE_CHECKING:
    from lakelite.transaction.transaction import Transaction


def run_sets(tx: Transaction, operation: st.Operation, text: str, sets: Sequence[Mapping[str, Any]]) -> int:
    """A statement once for each parameter set, an INSERT … VALUES for all at once; returns the rows changed. An error says which set it was."""
    if len(sets) == 1:
        return tx.run(operation, Call(text, sets[0])).rowcount
    if isinstance(operation, st.Insert) and operation.is_values and not (operation.overwrite or operation.on_conflict):
        with _numbered(tx, text, lambda: _first_failing(tx, operation, text, sets)):
            return tx.run(operation, Call(text, {}), sets).rowcount
    counts: list[int] = []
    with _numbered(tx, text, lambda: len(counts) + 1):
        for values in sets:
            counts.append(tx.run(operation, Call(text, values)).rowcount)
    return sum(counts)


@contextmanager
def _numbered(tx: Transaction, text: str, number: Callable[[], int]) -> Iterator[None]:
    """Errors in the block are ours, and say the set, counted from 1. One that the first set meets is only its own if it is one of values."""
    try:
        yield
    except duckdb.InterruptException:
        raise
    except Exception as error:
        try:
            reraise(error, text, nameable(tx.execution.engine, tx.work.namespace))
        except Error as ours:
            of_values = isinstance(ours, DataError | IntegrityError)
            which = number()
            if of_values or which > 1:
                ours.message = f"parameter set {which}: {ours.message}"
            raise


def _first_failing(tx: Transaction, operation: st.Operation, text: str, sets: Sequence[Mapping[str, Any]]) -> int:
    """The number of the set up to which they go well together, and with which they do not."""
    well, badly = 0, len(sets)
    while badly - well > 1:
        middle = (well + badly) // 2
        if _fails(tx, operation, text, sets[:middle]):
            badly = middle
        else:
            well = middle
    return badly


def _fails(tx: Transaction, operation: st.Operation, text: str, sets: Sequence[Mapping[str, Any]]) -> bool:
    mark = tx.mark()
    try:
        tx.run(operation, Call(text, {}), sets)
    except duckdb.InterruptException:
        raise
    except (duckdb.Error, Error):
        return True
    finally:
        tx.reset(mark)
    return False
