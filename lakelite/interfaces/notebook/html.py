"""A result as an HTML table. Pure functions.

Promises: every name and value is escaped, and control characters are spelled out, so that nothing leaves its cell. No colour of its own:
text and lines have the colour of the page, dark or light. What is left out is said in the caption, with how to see it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from lakelite.interfaces.notebook.kept import Columns
from lakelite.interfaces.render import Ends, Row, type_title
from lakelite.interfaces.values import is_numeric, plain, visible
from lakelite.records import dataclass

SHOWN_COLUMNS = 30
SHOWN_CHARACTERS = 100
TOOLTIP_CHARACTERS = 1_000
_LINE = "color-mix(in srgb, currentColor 25%, transparent)"
_OURS = ".lakelite.lakelite.lakelite"  # three times, to go before what the page says of all tables
STYLE = f"""<style>
.lakelite {{ overflow-x: auto; max-width: 100%; }}
{_OURS} table {{ border-collapse: collapse; color: inherit; font-size: 0.9em; font-variant-numeric: tabular-nums; margin: 0; }}
{_OURS} caption {{ caption-side: bottom; text-align: left; padding: 0.4em 0.6em; white-space: pre-line; color: inherit; }}
{_OURS} :is(th, td) {{ padding: 0.15em 0.6em; text-align: left; vertical-align: top; border: 0; white-space: pre; color: inherit; max-width: none; }}
{_OURS} thead th {{ border-bottom: 2px solid {_LINE}; font-weight: 600; vertical-align: bottom; }}
{_OURS} tbody tr {{ background: none; border-top: 1px solid {_LINE}; }}
{_OURS} small {{ display: block; font-size: 0.85em; font-weight: 400; opacity: 0.75; }}
{_OURS} .n {{ text-align: right; }}
{_OURS} .gap {{ font-style: italic; }}
{_OURS} em {{ opacity: 0.75; }}
</style>"""


@dataclass(frozen=True, slots=True)
class Shown:
    """`columns`: name and type of each. `outcome`: what is said below. `is_whole`: no column is left out, and no value cut.

    `see_all`: how a person sees what is left out.
    """

    columns: Columns
    rows: Ends
    outcome: str
    is_whole: bool
    see_all: str


def page(shown: Shown) -> str:
    """The table, in a region that scrolls, with its style."""
    return (
        f'{STYLE}\n<div class="lakelite" role="region" aria-label="result" tabindex="0">\n<table class="tex2jax_ignore mathjax_ignore">\n'
        f"<caption>{text(_caption(shown), many=True)}</caption>\n"
        f"<thead><tr>{''.join(_headings(shown))}</tr></thead>\n<tbody>\n{''.join(_body(shown))}</tbody>\n</table>\n</div>"
    )


def text(value: str, *, many: bool = False) -> str:
    """Any text as HTML shows it. `many`: line ends stay."""
    return "\n".join(escape(visible(line)) for line in value.split("\n")) if many else escape(visible(value))


def _places(shown: Shown) -> list[int]:
    """The columns that are shown, by number; -1 stands for those that are left out."""
    count, half = len(shown.columns), SHOWN_COLUMNS // 2
    if shown.is_whole or count <= SHOWN_COLUMNS:
        return list(range(count))
    return [*range(half), -1, *range(count - half, count)]


def _headings(shown: Shown) -> Iterable[str]:
    for place in _places(shown):
        if place < 0:
            yield f'<th scope="col" title="{len(shown.columns) - SHOWN_COLUMNS} more columns">…</th>'
        else:
            name, kind = shown.columns[place]
            yield f'<th scope="col"{_side(kind)}>{_cut(name, shown)}<small>{_cut(type_title(kind), shown)}</small></th>'


def _body(shown: Shown) -> Iterable[str]:
    places = _places(shown)
    for row in shown.rows.first:
        yield _row(row, places, shown)
    if shown.rows.hidden:
        yield f'<tr><td class="gap" colspan="{len(places)}">… {counted(shown.rows.hidden, "row")} not shown …</td></tr>\n'
    for row in shown.rows.last:
        yield _row(row, places, shown)


def _row(row: Row, places: Sequence[int], shown: Shown) -> str:
    return "<tr>" + "".join("<td>…</td>" if place < 0 else _cell(row[place], shown.columns[place][1], shown) for place in places) + "</tr>\n"


def _cell(value: Any, kind: str, shown: Shown) -> str:
    return f"<td{_side(kind)}>{'<em>NULL</em>' if value is None else _cut(plain(value, kind), shown)}</td>"


def _side(kind: str) -> str:
    return ' class="n"' if is_numeric(kind) else ""


def _cut(value: str, shown: Shown) -> str:
    """A text; of a long one the beginning, with more of it where the pointer rests."""
    if shown.is_whole or len(value) <= SHOWN_CHARACTERS:
        return text(value)
    return f'<span title="{text(value[:TOOLTIP_CHARACTERS])}">{text(value[: SHOWN_CHARACTERS - 1])}…</span>'


def _caption(shown: Shown) -> str:
    left_out = [f"{counted(shown.rows.hidden, 'row')} not shown"] if shown.rows.hidden else []
    more = len(shown.columns) - SHOWN_COLUMNS
    left_out += [f"{counted(more, 'column')} not shown"] if more > 0 and not shown.is_whole else []
    left_out += ["long values are cut"] if _has_long(shown) else []
    return shown.outcome + (f"\n{'; '.join(left_out)}: {shown.see_all}" if left_out else "")


def _has_long(shown: Shown) -> bool:
    kinds = [kind for _, kind in shown.columns]
    rows = (*shown.rows.first, *shown.rows.last)
    return not shown.is_whole and any(len(plain(v, k)) > SHOWN_CHARACTERS for row in rows for v, k in zip(row, kinds, strict=True))


def counted(count: int, what: str) -> str:
    """A number of things, in words."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"
