"""Planting a bug: one piece of a function of the product is replaced by a wrong one, for as long as a block lasts.

The function's code is swapped, so that whoever has imported it runs the wrong one. A piece that is not there exactly once is an
error of its own: a bug that the product has outgrown must not count as found.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any


@contextmanager
def planted(where: Callable[..., Any] | property, right: str, wrong: str) -> Iterator[None]:
    """Runs the block with `wrong` in the place of `right` in the source of a function, method or property."""
    function = _function(where)
    before = function.__code__
    code = _with(function, right, wrong)
    assert code.co_freevars == before.co_freevars == (), "a function that stands inside another cannot be replaced"
    function.__code__ = code
    try:
        yield
    finally:
        function.__code__ = before


def _function(where: Any) -> FunctionType:
    found = inspect.unwrap(where.fget if isinstance(where, property) else where)  # a context manager's generator, not what wraps it
    assert isinstance(found, FunctionType)
    return found


def _with(function: FunctionType, right: str, wrong: str) -> CodeType:
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(right) == 1, f"{function.__qualname__} has {source.count(right)} times: {right}"
    made: dict[str, Any] = {}
    text = "from __future__ import annotations\n" + source.replace(right, wrong)
    exec(compile(text, f"<{function.__qualname__}, with a bug>", "exec"), dict(function.__globals__), made)
    return _function(made[function.__name__]).__code__
