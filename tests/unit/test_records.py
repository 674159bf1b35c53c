"""The classes whose methods are made with their first instance, against those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest

from lakelite import records
from lakelite.model import Column, Field


def both(**names: Any) -> tuple[Any, Any]:
    """One class, made by both."""

    def made(by: Any) -> Any:
        @by(frozen=True, slots=True)
        class Point:
            """A point."""

            x: int
            y: int = 2
            tags: dict[str, int] = dataclasses.field(default_factory=dict, compare=False)

            def total(self) -> int:
                return self.x + self.y

        @by(frozen=True, slots=True)
        class Named(Point):
            """A point with a name."""

            name: str = "n"
            y: int = 7

        return Named if names.get("named") else Point

    return made(records.dataclass), made(dataclasses.dataclass)


def outcome(body: Any) -> Any:
    try:
        return body()
    except Exception as error:
        return type(error), str(error)


USES = {
    "repr": lambda made: repr(made(1)),
    "equal": lambda made: (made(1) == made(1), made(1) == made(2), made(1) == (1, 2), made(1, tags={"a": 1}) == made(1)),
    "hash": lambda made: hash(made(1)) == hash(made(1, tags={"a": 1})),
    "method": lambda made: made(1, y=5).total(),
    "match": lambda made: made.__match_args__,
    "default": lambda made: (made(1).tags, made(1).tags is made(1).tags),
    "too few": lambda made: made(),
    "unknown": lambda made: made(1, z=3),
    "frozen": lambda made: setattr(made(1), "x", 3),
    "deleted": lambda made: delattr(made(1), "x"),
    "no dict": lambda made: hasattr(made(1), "__dict__"),
    "fields before an instance": lambda made: [(f.name, f.type, f.compare) for f in dataclasses.fields(made)],
    "is one": lambda made: (dataclasses.is_dataclass(made), dataclasses.is_dataclass(made(1))),
    "replaced": lambda made: repr(dataclasses.replace(made(1), y=9)),
    "dict": lambda made: dataclasses.asdict(made(1)),
    "copied": lambda made: (copy.copy(made(1)) == made(1), copy.deepcopy(made(1)) == made(1)),
    "doc": lambda made: (made.__doc__, made.__name__, made.__module__),
}


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("use", USES)
def test_a_class_does_what_one_of_the_standard_library_does(use: str, named: bool) -> None:
    ours, theirs = both(named=named)
    assert outcome(lambda: USES[use](ours)) == outcome(lambda: USES[use](theirs))


def test_a_class_keeps_what_it_defines_itself() -> None:
    @records.dataclass(frozen=True, slots=True)
    class Loud:
        a: int

        def __repr__(self) -> str:
            return "LOUD"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 1

    assert (repr(Loud(1)), Loud(1) == 3, hash(Loud(1))) == ("LOUD", True, 1)


def test_a_subclass_that_is_no_record_has_the_methods_of_one() -> None:
    base, _ = both()

    class Sub(base):
        pass

    assert (Sub(1).x, Sub(1).y, repr(base(1))) == (1, 2, repr(base(1)))


def test_other_forms_are_those_of_the_standard_library() -> None:
    @records.dataclass(slots=True)
    class Counter:
        n: int = 0

    counter = Counter()
    counter.n += 1
    assert counter == Counter(1)


def test_one_goes_through_pickle() -> None:
    column = Column("a", "INTEGER", Field(1, "", "INTEGER"))
    assert pickle.loads(pickle.dumps(column)) == column
