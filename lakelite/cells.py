"""How many cells of a terminal a text takes, so that what is printed below it stands in the right place. Pure functions."""

from __future__ import annotations

import unicodedata


def width(text: str) -> int:
    """How many terminal cells `text` takes: two for wide characters, none for combining ones. A control character counts as one."""
    return len(text) if text.isascii() else sum(map(cells_of, text))


def cells_of(character: str) -> int:
    """How many terminal cells one character takes."""
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def fitted(text: str, most: int) -> str:
    """`text` in at most `most` characters: `…` stands for what is cut out of its middle."""
    if len(text) <= most:
        return text
    tail = most // 4
    return f"{text[: most - tail - 1]}…{text[len(text) - tail :]}"
