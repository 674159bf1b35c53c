"""`@dataclass(frozen=True, slots=True)` whose methods are made when the first instance of the class is.

The standard library writes and compiles six methods as a class is defined, 0.3 ms each time (Python 3.11), and of the 190 such classes that
`lakelite -c "select 1"` loads it makes instances of a few. Here a class gets its slots at once, and the rest, by the standard library, with its
first instance, or when somebody asks for its fields. Every other form of `dataclass`, and a class that is more than its fields, is the
standard library's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, frozen: bool = False, slots: bool = False, **others: bool) -> Callable[[type], type]:
        """As that of `dataclasses`."""
        if frozen and slots and not others:
            return _slotted
        return dataclasses.dataclass(frozen=frozen, slots=slots, **others)


_FIELDS = "__dataclass_fields__"
_GENERATED = (
    "__match_args__ __repr__ __eq__ __hash__ __setattr__ __delattr__ __dataclass_params__ __dataclass_fields__ __init__".split()
)  # what makes instances last
_OF_A_CLASS = ("__dict__", "__weakref__")
_NO_FIELDS = ("ClassVar", "InitVar", "KW_ONLY")  # annotations that only the standard library tells from those of fields


class _Fields:
    """What `dataclasses` knows of a class, for whom asks before there is an instance."""

    def __init__(self, complete: Callable[[], None]) -> None:
        self._complete = complete

    def __get__(self, instance: object, owner: type) -> Any:
        self._complete()
        return getattr(owner, _FIELDS)


def _state(record: Any) -> list[Any]:
    return [getattr(record, field.name) for field in dataclasses.fields(record)]


def _set_state(record: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(record), state, strict=True):
        object.__setattr__(record, field.name, value)


def _is_plain(cls: type) -> bool:
    """Whether each annotation is that of a field with a slot that `__init__` fills from what it is given."""
    annotations = " ".join(map(str, cls.__annotations__.values()))
    fields = (value for value in vars(cls).values() if isinstance(value, dataclasses.Field))
    return not any(word in annotations for word in _NO_FIELDS) and all(field.init for field in fields)


def _slotted(cls: Any) -> Any:
    if not _is_plain(cls):
        return dataclasses.dataclass(frozen=True, slots=True)(cls)
    names = tuple(cls.__annotations__)
    written = {name: value for name, value in vars(cls).items() if name not in _OF_A_CLASS} | {"__qualname__": cls.__qualname__}
    inherited = [name for base in cls.__mro__[1:] for name in getattr(base, "__slots__", ())]
    slots = tuple(name for name in names if name not in inherited)
    without_defaults = {name: value for name, value in written.items() if name not in names}
    matched = tuple(dict.fromkeys([*(name for base in cls.__bases__ for name in getattr(base, "__match_args__", ())), *names]))
    made = type(cls)(cls.__name__, cls.__bases__, without_defaults | {"__slots__": slots, "__match_args__": matched})

    def complete() -> None:
        whole: Any = dataclasses.dataclass(frozen=True)(type(cls)(cls.__name__, cls.__bases__, written))
        for name in _GENERATED:  # what the class defines itself is among them: the standard library keeps it
            setattr(made, name, vars(whole)[name])

    def first(self: object, *values: Any, **named: Any) -> None:
        complete()
        made.__init__(self, *values, **named)

    made.__init__ = first
    if "__getstate__" not in written:
        made.__getstate__, made.__setstate__ = _state, _set_state
    setattr(made, _FIELDS, _Fields(complete))
    return made
