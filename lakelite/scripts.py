"""A script: its statements are run one by one, each when its result is asked for, and an error knows its place in the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lakelite.errors import Error
from lakelite.language.parse import parse_piece, split_script
from lakelite.language.statements import Statement
from lakelite.mapping.withheld import withhold
from lakelite.parameters import Parameters, names_of, text_of
from lakelite.records import dataclass
from lakelite.results import Result


@dataclass(frozen=True, slots=True)
class Where:
    """Where in a script a statement begins, so that an error can say it. `number`: None if the script has only one statement.

    `parameters`: the values that the script was given, which an error does not show.
    """

    script: str
    start: int = 0
    number: int | None = None
    parameters: Parameters = None

    def place(self, error: Error) -> None:
        withhold(error, self.script, self.parameters)
        error.within(self.script, self.start, self.number)


class Script(Iterator[Result]):
    """The statements of a script as results. An error does not end it: the next statement can be asked for."""

    def __init__(self, script: str, parameters: Parameters, run: Callable[[Statement, Where], Result]) -> None:
        """`run`: runs one statement. Raises InterfaceError for what is no script, or no parameters."""
        self._run = run
        self._parameters = parameters
        self._named = names_of(parameters)
        self._script = text_of(script)
        self._pieces = split_script(self._script)
        self._following = next(self._pieces, None)
        self._count = 0

    def __next__(self) -> Result:
        piece = self._following
        if piece is None:
            raise StopIteration
        self._following = next(self._pieces, None)  # before this one is parsed: one that is broken does not end the script
        self._count += 1
        is_alone = self._count == 1 and self._following is None
        where = Where(self._script, piece.start, None if is_alone else self._count, self._parameters)
        try:
            return self._run(parse_piece(piece, self._named), where)
        except Error as error:
            where.place(error)
            raise
