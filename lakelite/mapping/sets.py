"""Which parameter set of several an error belongs to: said on the way out, where it is known, and told by `ours.py`, whatever the error is then."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lakelite.errors import Error

_OF_SET = "parameter set "


def belongs_to(error: Exception, number: int, count: int) -> None:
    """Says that the `number`-th of `count` sets has failed."""
    error.add_note(f"{_OF_SET}{number} of {count}")


@contextmanager
def of_set(number: int, count: int) -> Iterator[None]:
    """The block is what is done for the `number`-th of `count` parameter sets; of one alone there is nothing to say."""
    try:
        yield
    except Exception as error:
        if count > 1:
            belongs_to(error, number, count)
        raise


def tell(seen: Error, error: BaseException) -> None:
    """Puts what is known of the set of `error` into the message of `seen`."""
    for note in getattr(error, "__notes__", ()):
        if note.startswith(_OF_SET) and f"({note})" not in seen.message:
            seen.message = f"{seen.message} ({note})"
