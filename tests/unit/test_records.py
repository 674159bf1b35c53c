"""The classes whose methods are made with their first instance, against those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import pickle
import pkgutil
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import pytest

import lakelite
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


def forms(by: Any) -> dict[str, Callable[[], Any]]:
    """Classes that are more than a list of fields, each with what is asked of it."""

    @by(frozen=True, slots=True)
    class Loud:
        a: int

        def __repr__(self) -> str:
            return "LOUD"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 1

    @by(frozen=True, slots=True)
    class Equal:
        a: int

        def __eq__(self, other: object) -> bool:
            return True

    @by(frozen=True, slots=True)
    class Initialised:
        a: int

        def __init__(self, given: int) -> None:
            object.__setattr__(self, "a", given + 1)

    @by(frozen=True, slots=True)
    class Shared:
        a: int
        LIMIT: ClassVar[int] = 3

    @by(frozen=True, slots=True)
    class Given:
        a: int
        plus: dataclasses.InitVar[int] = 2

        def __post_init__(self, plus: int) -> None:
            object.__setattr__(self, "a", self.a + plus)

    @by(frozen=True, slots=True)
    class Counted:
        a: int
        count: int = dataclasses.field(default=4, init=False)

    @by(frozen=True, slots=True)
    class Keyword:
        a: int = 1
        _: dataclasses.KW_ONLY
        b: int = 2

    return {
        "own methods": lambda: (repr(Loud(1)), Loud(1) == 3, hash(Loud(1))),
        "own equality": lambda: (Equal(1) == 3, hash(Equal(1)) == hash((1,))),
        "own __init__": lambda: repr(Initialised(1)),
        "of the class": lambda: (Shared.LIMIT, repr(Shared(1)), Shared.__slots__),
        "given to __init__ only": lambda: (repr(Given(1)), Given(1, 5).a),
        "not given to __init__": lambda: (repr(Counted(1)), Counted.__match_args__),
        "by keyword": lambda: (repr(Keyword(b=3)), Keyword.__match_args__),
        "not given by keyword": lambda: Keyword(1, 2),
    }


@pytest.mark.parametrize("form", forms(dataclasses.dataclass))
def test_a_class_that_is_more_than_its_fields_does_what_one_of_the_standard_library_does(form: str) -> None:
    assert outcome(forms(records.dataclass)[form]) == outcome(forms(dataclasses.dataclass)[form])


def test_several_threads_make_the_first_instance() -> None:
    many, classes = 8, [both()[0] for _ in range(20)]
    start = threading.Barrier(many)

    def instances(_: int) -> list[str]:
        start.wait()
        return [repr(made(1, y=2)) for made in classes]

    with ThreadPoolExecutor(many) as threads:
        assert set(map(tuple, threads.map(instances, range(many)))) == {tuple(repr(made(1)) for made in classes)}


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


def test_each_class_of_the_package_is_a_right_one() -> None:
    """What is wrong in a definition would only show with the first instance."""
    for module in pkgutil.walk_packages(lakelite.__path__, "lakelite."):
        if not module.name.startswith(("lakelite.interfaces.", "lakelite.__main__")):
            importlib.import_module(module.name)
    classes = [
        value
        for name, module in list(sys.modules.items())
        if name.startswith("lakelite.")
        for value in vars(module).values()
        if isinstance(value, type)
    ]
    found = {one for one in classes if one.__module__.startswith("lakelite.") and dataclasses.is_dataclass(one)}
    assert len(found) > 150
    for one in found:
        names = [field.name for field in dataclasses.fields(one)]
        assert set(names) <= {name for base in one.__mro__ for name in getattr(base, "__annotations__", {})}


def test_one_goes_through_pickle() -> None:
    column = Column("a", "INTEGER", Field(1, "", "INTEGER"))
    assert pickle.loads(pickle.dumps(column)) == column
