"""A script, run one statement at a time. Owns where in it a statement stands, so that every error can say it.

Promises: a statement is parsed when it is asked for, and one that is broken does not end the script.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lakelite.errors import Error
from lakelite.language import statements as st
from lakelite.language.parse import parse_piece, split_script
from lakelite.parameters import Parameters, names_of, text_of
from lakelite.results import Result


@dataclass(frozen=True, slots=True)
class Where:
    """Where in a script a statement begins, so that an error can say it. `number`: None if the script has only one statement."""

    script: str
    start: int = 0
    number: int | None = None

    def place(self, error: Error) -> None:
        error.within(self.script, self.start, self.number)


class Script(Iterator[Result]):
    """The statements of a script, each given to `run` with its place. An error does not end it: the next statement can be asked for."""

    def __init__(self, script: str, parameters: Parameters, run: Callable[[st.Statement, Where], Result]) -> None:
        self._script = text_of(script)
        self._named = names_of(parameters)
        self._run = run
        self._pieces = split_script(self._script)
        self._count = 0
        self._has_several = False

    def __next__(self) -> Result:
        piece = next(self._pieces)  # taken before it is parsed: one that is broken does not end the script
        self._count += 1
        self._has_several = self._has_several or bool(self._count > 1 or self._script[piece.start + len(piece.text) :].strip("; \t\r\n"))
        where = Where(self._script, piece.start, self._count if self._has_several else None)
        try:
            return self._run(parse_piece(piece, self._named), where)
        except Error as error:
            where.place(error)
            raise
