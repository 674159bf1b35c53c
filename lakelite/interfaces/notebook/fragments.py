"""The fragments of a table as a picture: a bar for each, as long as it has rows, with the share of it that is deleted hatched."""

from __future__ import annotations

from collections.abc import Sequence

from lakelite.interfaces.commands.command import Asking, steady
from lakelite.interfaces.commands.look import existing, of_table
from lakelite.interfaces.notebook.html import counted
from lakelite.interfaces.notebook.svg import Picture, drawing, element, label, title
from lakelite.records import dataclass

MOST_BARS = 60
BAR_PX, ROW_PX, TOP_PX, LEFT_PX, TEXT_PX = 360, 24, 34, 70, 460
_FRAGMENTS = """
SELECT fragment_id, storage, row_count, deleted_count, size_bytes, first_snapshot_id, partition FROM lake.fragments {} ORDER BY fragment_id"""
_HATCH = '<pattern id="lakelite-hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M0 0V6"/></pattern>'


@dataclass(frozen=True, slots=True)
class Fragment:
    """`since`: the version that it came with. `deleted`: how many of its `rows` are."""

    number: int
    storage: str
    rows: int
    deleted: int
    bytes: int
    since: int
    partition: str | None

    def __str__(self) -> str:
        of = f", {self.partition}" if self.partition else ""
        return (
            f"{counted(self.rows, 'row')}, {_share(self.deleted, self.rows)} deleted, {_size(self.bytes)}, {self.storage}, version {self.since}{of}"
        )


def picture(lake: Asking, table: str) -> Picture:
    """The fragments of a table, whose name is as it is written in SQL. ProgrammingError: there is none."""
    with steady(lake):
        found = [Fragment(*row) for row in lake.rows(_FRAGMENTS.format(of_table(existing(lake, table))))]
    return drawn(table, found)


def drawn(table: str, fragments: Sequence[Fragment]) -> Picture:
    """The largest ones, in order, and what there is of others."""
    shown = set(sorted(fragments, key=lambda one: -one.rows)[:MOST_BARS])
    most = max((one.rows for one in fragments), default=0)
    name = f"{table}: {_summary(fragments)}"
    bars = [_bar(one, TOP_PX + ROW_PX * i, most) for i, one in enumerate(one for one in fragments if one in shown)]
    lines = [name, *(f"  {one.number}: {one}" for one in fragments if one in shown)]
    height = TOP_PX + ROW_PX * len(bars)
    if len(fragments) > len(shown):
        rest = f"and {len(fragments) - len(shown):,} smaller ones"
        bars.append(label(rest, LEFT_PX, height + ROW_PX / 2))
        height += ROW_PX
        lines.append(f"  {rest}")
    svg = drawing(name, LEFT_PX + BAR_PX + TEXT_PX, height + 8, _HATCH, label(name, 4, 18, font_weight="bold"), *bars)
    return Picture(svg, "\n".join(lines))


def _summary(fragments: Sequence[Fragment]) -> str:
    rows, deleted, size = (sum(getattr(one, of) for one in fragments) for of in ("rows", "deleted", "bytes"))
    return f"{counted(len(fragments), 'fragment')}, {counted(rows - deleted, 'row')}, {deleted:,} deleted, {_size(size)}"


def _bar(one: Fragment, top: float, most: int) -> str:
    length = max(BAR_PX * one.rows / most, 1) if most else 1
    gone = length * one.deleted / one.rows if one.rows else 0
    box = {"y": f"{top:g}", "height": ROW_PX - 8}
    middle = top + ROW_PX / 2
    return element(
        "g",
        title(f"fragment {one.number}: {one}"),
        label(str(one.number), LEFT_PX - 8, middle, text_anchor="end"),
        element("rect", x=LEFT_PX, width=f"{length:g}", fill="currentColor", fill_opacity=0.25, **box),
        element("rect", x=f"{LEFT_PX + length - gone:g}", width=f"{gone:g}", fill="url(#lakelite-hatch)", **box) if gone else "",
        label(str(one), LEFT_PX + BAR_PX + 10, middle),
    )


def _share(part: int, whole: int) -> str:
    percent = 100 * part / whole if whole else 0
    return "less than 1 %" if 0 < percent < 1 else f"{percent:.0f} %"


def _size(count: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1_000:
            return f"{count:.0f} bytes" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1_000
    return f"{count:.1f} TB"
