"""What a person types at once, at whichever prompt: when it is whole, and what the prompt says. Pure functions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakelite.cells import width
from lakelite.interfaces.commands.script import separated
from lakelite.interfaces.values import elide, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME_CELLS = 16
TEMPORARY = "lake"
MAIN = "main"
_LEAVES = ("exit", "quit")


def is_quit_word(text: str) -> bool:
    """Whether it is `exit` or `quit` without a dot, as in psql; no statement begins so."""
    return text.strip(" \t\r\n;").casefold() in _LEAVES


def is_whole(text: str) -> bool:
    """Whether a text can be run: nothing, dot commands, and statements each with its semicolon."""
    from lakelite.language.tokens import is_complete

    if is_quit_word(text):
        return True
    left = separated(text).sql
    return not left.strip() or (";" in left and is_complete(left))


def grouped(lines: Sequence[str], most_lines: int = 100) -> list[str]:
    """The lines of a history as what was typed at once. What does not become whole within `most_lines` stands line by line."""
    found: list[str] = []
    text = ""
    for line in lines:
        text = f"{text}\n{line}" if text else line
        if is_whole(text):
            found.append(text)
            text = ""
        elif text.count("\n") >= most_lines:
            found += text.split("\n")
            text = ""
    return [*found, *text.split("\n")] if text else found


def prompt(connection: Any, lake: str | None) -> str:
    """`name> `, with the branch where it is not main, the version that the session is pinned to, and `*` in a transaction."""
    name = TEMPORARY if lake is None else Path(lake).resolve().name.removesuffix(".lake") or lake
    branch, version = getattr(connection, "branch", MAIN), getattr(connection, "pinned_version", None)
    place = name if branch == MAIN else f"{name}:{branch}"
    at = "" if version is None else f"@{version}"
    return f"{elide(visible(place), NAME_CELLS)}{at}{'*' if connection.in_transaction else ''}> "


def continuation(first: str, opened: str = "") -> str:
    """The prompt of a following line, which ends where the first one ends. `opened`: the bracket or quote that is still open there."""
    return f"..{opened or '.'}> "[-width(first) :].rjust(width(first))
