"""How dot commands are told from SQL: a command is a line that begins with a dot (or a backslash) where a statement could begin.

Pure functions. Never looks into a statement but to see where it ends.
"""

from __future__ import annotations

import re

from lakelite.records import dataclass

_LINE = re.compile(r"^[ \t]*[.\\].*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Script:
    """`sql`: the text with blanks for the commands, so that places in it stay what they are.

    `commands`: in order, how many statements stand before each, and the line.
    """

    sql: str
    commands: tuple[tuple[int, str], ...] = ()


def separated(text: str) -> Script:
    """The statements and the dot commands of a script."""
    from lakelite.language.tokens import is_complete, split_script

    parts: list[str] = []
    commands: list[tuple[int, str]] = []
    start = count = 0
    for line in _LINE.finditer(text):
        before = text[start : line.start()]
        if not _may_end(before):
            continue
        pieces = sum(1 for _ in split_script(before))
        if pieces and not is_complete(before):
            continue
        count += pieces
        commands.append((count, line[0].strip()))
        parts += before, " " * len(line[0])
        start = line.end()
    return Script("".join(parts) + text[start:], tuple(commands))


def _may_end(text: str) -> bool:
    """Whether a statement may end with this text. A quick look at its last line, so that the text is not lexed for every line with a dot."""
    last = text.rstrip().rpartition("\n")[2].strip()
    return not last or ";" in last or last.startswith("--") or last.endswith("*/")
