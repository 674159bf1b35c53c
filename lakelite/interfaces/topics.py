"""What `.help` can explain beside its own commands: the reference pages of the guide, cut into topics.

The guide (lakelite/docs) is the source: a topic is a section of a page, or a row of a table whose first cell is a name. Reads these
files once, when it is first asked; knows nothing of a lake.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from functools import lru_cache

from lakelite.records import dataclass
from lakelite.resources import folder

STATEMENT, REFUSED, VIEW, SETTING, ERROR = "statement", "statement that is refused", "system view", "setting", "error"
_SECTIONS = {"statements": STATEMENT, "system_views": VIEW}
_ROWS = {"statements": REFUSED, "settings": SETTING, "errors": ERROR}
_ALSO = {
    "SELECT": ("TIME TRAVEL", "AT", "AS OF"), "INSERT": ("UPSERT", "ON CONFLICT"), "COPY": ("ADOPT",),
    "CREATE TABLE": ("PARTITIONED BY", "PARTITION", "TEMP", "TEMPORARY", "PRIMARY KEY", "UNIQUE", "CHECK"),
}  # fmt: skip
"""What sections are asked for by, beside their titles."""
_SECTION = re.compile(r"^## ([^\n]+)\n(.*?)(?=^##? |\Z)", re.DOTALL | re.MULTILINE)
_FENCED = re.compile(r"^```.*\n((?:.*\n)*?)```$", re.MULTILINE)
_CODE = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")


@dataclass(frozen=True, slots=True)
class Topic:
    """`names`: by any of which it is found, in any case. `text`: Markdown."""

    kind: str
    title: str
    names: tuple[str, ...]
    text: str

    def shown(self, columns: int) -> str:
        """For a terminal: the title, paragraphs of at most `columns`, and code as it is, indented."""
        return f"{self.title}\n\n{_plain(self.text, columns)}"


@lru_cache(maxsize=1)
def topics() -> tuple[Topic, ...]:
    """All of them, in the order of the guide."""
    found: list[Topic] = []
    for page, kind in _SECTIONS.items():
        found += (Topic(kind, title, tuple(title.split(", ")), text.strip()) for title, text in _SECTION.findall(_read(page)))
    for page, kind in _ROWS.items():
        found += _rows(kind, _read(page))
    return tuple(found)


def find(name: str) -> tuple[list[Topic], list[str]]:
    """The topics of that name, or the only one whose name begins with its words; and the titles of others that do."""
    wanted = " ".join(name.split()).lower()
    exact = [topic for topic in topics() if wanted in map(str.lower, topic.names + _ALSO.get(topic.names[0], ()))]
    others = (topic for topic in topics() if topic not in exact and topic.kind != REFUSED)
    longer = [topic for topic in others if any(one.lower().startswith(f"{wanted} ") for one in topic.names)]
    return (longer, []) if not exact and len(longer) == 1 else (exact, [topic.title for topic in longer])


def _read(page: str) -> str:
    return (folder("docs") / f"{page}.md").read_text("utf-8")


def _rows(kind: str, text: str) -> Iterator[Topic]:
    """Of each table: a row whose first cell is code. Its names are the cells that are nothing but code."""
    heading: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")] if line.startswith("|") else []
        if not cells or not (first := _CODE.fullmatch(cells[0])):
            heading = cells if cells and set(cells[0]) != {"-"} else heading
            continue
        names = tuple(found[1] for cell in cells if (found := _CODE.fullmatch(cell)))
        told = "\n".join(f"- {name}: {cell}" for name, cell in zip(heading[1:], cells[1:], strict=True))
        yield Topic(kind, first[1], names, told)


def _plain(text: str, columns: int) -> str:
    prose_and_code = _FENCED.split(f"{text}\n")
    shown = [textwrap.indent(part, "  ") if index % 2 else _paragraphs(part, columns) for index, part in enumerate(prose_and_code)]
    return "\n\n".join(part.rstrip() for part in shown if part.strip())


def _paragraphs(text: str, columns: int) -> str:
    """Paragraphs filled; lists and tables line by line; links as their words, and without comments of the page's maker."""
    text = re.sub(r"<!--.*?-->\n?", "", _LINK.sub(r"\1", text), flags=re.DOTALL).strip()
    return "\n\n".join(part if part[:1] in "|-" else textwrap.fill(" ".join(part.split()), columns) for part in re.split(r"\n{2,}", text) if part)
