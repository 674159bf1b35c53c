"""Where in the user's text an error of DuckDB's belongs.

DuckDB quotes a line of the text that it saw, which may be another than the user typed: a scan was wrapped around a WHERE, a
value was put into a cast. Promises: a place is given only where it is sure; a wrong one never.
"""

from __future__ import annotations

import re

from lakelite.cells import width
from lakelite.errors import Position
from lakelite.records import dataclass

_QUOTED_LINE = re.compile(r"\n\nLINE (\d+): (.*)\n( *)\^[\^~]*[^\n]*\s*\Z", re.DOTALL)
_BEFORE_ITEM = re.compile(r"(?:,|\bSELECT|\bDISTINCT)\s*\Z", re.IGNORECASE)
_FRAME = "CAST(("  # how we begin the cast of a value in an INSERT or UPDATE; the user's own text follows
_PIVOT = re.compile(r"SELECT \* FROM .* PIVOT \(")  # DuckDB writes PIVOT anew, and shows in that text a place of the old one
_WORD = re.compile(r"[^\W\d]\w*(?:\.\w+)*|\"(?:[^\"]|\"\")*\"|'(?:[^']|'')*'|\d[\w.]*|\S")


@dataclass(frozen=True, slots=True)
class Quoted:
    """A line that DuckDB quotes, without dots for what it left out, and the index of the character that its caret points at."""

    line: str
    index: int
    number: int
    whole: bool


def quoted_line(raw: str) -> tuple[str, Quoted | None]:
    """DuckDB's message without the line that it quotes, and that line."""
    found = _QUOTED_LINE.search(raw)
    if found is None:
        return raw.strip(), None
    number, line = int(found[1]), found[2].rstrip("\r")
    lead = 3 if line.startswith("...") else 0
    whole = not lead and not line.endswith("...")
    index = _at_cell(line, len(found[3]) - len(f"LINE {number}: "))
    shown = line[lead : None if not line.endswith("...") or len(line) < 6 else -3]
    inside = index is not None and lead <= index < lead + len(shown)
    return raw[: found.start()].strip(), Quoted(shown, index - lead, number, whole) if inside and index is not None else None


def _at_cell(line: str, cell: int) -> int | None:
    """The index of the character that stands at a cell, where DuckDB takes a control character for none."""
    at = 0
    for index, character in enumerate(line):
        cells = width(character) if character >= " " else 0
        if at == cell and cells:
            return index
        at += cells
    return None


def place(text: str, quoted: Quoted) -> Position | None:
    """Where in `text` the character under DuckDB's caret stands."""
    if _PIVOT.match(quoted.line) and quoted.line not in text:
        return None
    starts = [(quoted.index, _word_at(quoted.line, quoted.index))]
    if quoted.line.startswith(_FRAME, quoted.index):
        inside = quoted.index + len(_FRAME)
        starts = [(quoted.index, _FRAME), (inside, _word_at(quoted.line, inside))]
    for index, word in starts:
        if word and (offset := _best(text, quoted, index, word)) is not None:
            return Position.at(text, offset)
    return None


def _word_at(line: str, index: int) -> str:
    found = _WORD.match(line, index)
    return found[0] if found else line[index : index + 1].strip()


def _best(text: str, quoted: Quoted, index: int, word: str) -> int | None:
    """Where `word`, which stands at `index` of the line, stands in `text`: where its surroundings agree for longest, if that is one place."""
    found = [(_agreement(text, offset, quoted.line, index), offset) for offset in _occurrences(text, word) or _parts(text, word)]
    most = max(found, default=(0, 0))[0]
    best = [offset for agreement, offset in found if agreement == most]
    if len(best) > 1 and quoted.whole:  # equal lines: the number says which, if the line is one of the user's
        here = Position(quoted.number, index + 1, quoted.line)
        best = [offset for offset in best if _without_return(Position.at(text, offset)) == here]
    return best[0] if len(best) == 1 else None


def _without_return(position: Position) -> Position:
    return Position(position.line, position.column, position.source.rstrip("\r"))


def _occurrences(text: str, word: str) -> list[int]:
    """Where `word` begins in `text`, as a word of its own."""
    before = r"(?<!\w)" if word[0].isalnum() or word[0] == "_" else ""
    after = r"(?!\w)" if word[-1].isalnum() or word[-1] == "_" else ""
    return [found.start() for found in re.finditer(f"{before}{re.escape(word)}{after}", text)]


def _parts(text: str, part: str) -> list[int]:
    """Where `part` begins in `text`, also within words: DuckDB's lexer may have cut one."""
    return [found.start() for found in re.finditer(re.escape(part), text)]


def _agreement(text: str, offset: int, line: str, index: int) -> int:
    """How many characters around the place are the same in both."""
    left = 0
    while left < min(offset, index) and text[offset - left - 1] == line[index - left - 1]:
        left += 1
    right = 0
    while right < min(len(text) - offset, len(line) - index) and text[offset + right] == line[index + right]:
        right += 1
    return left + right


def only_place(text: str, thing: str, *, item: bool = False) -> Position | None:
    """Where `thing`, a name or a value of an error without a place, stands in `text`, if it stands there once. `item`: in a list of a SELECT."""
    offsets = _occurrences(text, thing) if thing else []
    if len(offsets) != 1 or (item and not _BEFORE_ITEM.search(text[: offsets[0]])):
        return None
    quoted = offsets[0] > 0 and text[offsets[0] - 1] in "'\""
    return Position.at(text, offsets[0] - quoted)


def names_at(position: Position, name: str) -> bool:
    """Whether `name`, qualified or quoted or not, stands at the place."""
    bare = name.replace('"', "").lower()
    here = position.source[position.column - 1 :].replace('"', "").lower()
    dotted = re.match(r"[\w.]+", here)
    return bare in dotted[0].split(".") or dotted[0].startswith(f"{bare}.") or dotted[0] == bare if dotted else here.startswith(bare)
