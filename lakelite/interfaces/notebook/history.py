"""The newest versions as a graph: a lane for each branch, a point for each version, what it did beside it, the statements in its tooltip.

A version that was carried past others has a second ring; a line to what MERGE BRANCH took over is dashed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from lakelite.errors import InterfaceError
from lakelite.interfaces.commands.command import Asking, steady
from lakelite.interfaces.notebook.html import counted
from lakelite.interfaces.notebook.svg import Picture, drawing, element, label, title, words
from lakelite.interfaces.values import elide, visible
from lakelite.records import dataclass

ROW_PX, LANE_PX, TOP_PX, LEFT_PX, TEXT_PX = 40, 20, 24, 16, 760
MOST_VERSIONS = 1_000
STATEMENT_CELLS = 100
TOLD_CHARACTERS = 2_000
_VERSIONS = """
SELECT snapshot_id, parent_id, merge_parent_id, branch, committed_at, author, message, operation, array_to_string(statements, '; '), rows_added,
       rows_removed
FROM lake.snapshots ORDER BY snapshot_id DESC LIMIT {}"""
_CARRIED = "SELECT snapshot_id, winner_snapshot_id, explanation FROM lake.resolutions WHERE snapshot_id >= {} ORDER BY ALL"
_NAMES = "SELECT head_snapshot_id, '[' || name || ']' FROM lake.branches UNION ALL SELECT tagged_snapshot_id, '(tag ' || name || ')' FROM lake.tags"
_One = TypeVar("_One")


@dataclass(frozen=True, slots=True)
class Version:
    """One point of the graph. `parent`, `merged`: the versions that it stands on, and took over, or None."""

    number: int
    parent: int | None
    merged: int | None
    branch: str
    when: datetime
    author: str | None
    message: str | None
    operation: str
    statements: str
    added: int
    removed: int


@dataclass(frozen=True, slots=True)
class History:
    """`versions`: the newest first. `carried`: how a version was carried past others, the winner first. `names`: branches and tags on it."""

    versions: Sequence[Version]
    carried: Mapping[int, Sequence[tuple[int, str]]]
    names: Mapping[int, Sequence[str]]


def picture(lake: Asking, count: int) -> Picture:
    """The newest `count` versions, of all branches. InterfaceError: it is no number of versions."""
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST_VERSIONS:
        raise InterfaceError(f"the number of versions is one from 1 to {MOST_VERSIONS}", hint="lake.history_plot(20)")
    with steady(lake):
        versions = [Version(*row) for row in lake.rows(_VERSIONS.format(count))]
        carried = lake.rows(_CARRIED.format(versions[-1].number if versions else 0))
        names = lake.rows(_NAMES)
    return drawn(
        History(
            versions,
            _grouped([(number, (winner, why)) for number, winner, why in carried]),
            _grouped([(number, name) for number, name in names]),
        )
    )


def _grouped(pairs: Sequence[tuple[int, _One]]) -> dict[int, list[_One]]:
    found: dict[int, list[_One]] = {}
    for number, one in pairs:
        found.setdefault(number, []).append(one)
    return found


def drawn(history: History) -> Picture:
    """The graph."""
    lanes = _lanes(history.versions)
    places = {one.number: (LEFT_PX + LANE_PX * lanes[one.branch], TOP_PX + ROW_PX * i) for i, one in enumerate(history.versions)}
    bottom = TOP_PX + ROW_PX * len(history.versions)
    left = LEFT_PX + LANE_PX * len(lanes)
    edges = [line for one in history.versions for line in _edges(one, places, bottom)]
    points = [_point(one, places[one.number], left, history) for one in history.versions]
    name = f"the newest {counted(len(points), 'version')} of the lake, on {len(lanes)} branch{'' if len(lanes) == 1 else 'es'}"
    svg = drawing(name, left + TEXT_PX, bottom, *edges, *points)
    return Picture(svg, "\n".join([name, *(f"  {_head(one, history)}" for one in history.versions)]))


def _lanes(versions: Sequence[Version]) -> dict[str, int]:
    """Of the branches, the oldest on the left."""
    return {branch: i for i, branch in enumerate(dict.fromkeys(one.branch for one in reversed(versions)))}


def _edges(one: Version, places: Mapping[int, tuple[int, int]], bottom: int) -> list[str]:
    x, y = places[one.number]
    found = []
    if one.parent is not None:
        found.append(_edge((x, y), places.get(one.parent, (x, bottom)), dashed=one.parent not in places))
    if one.merged is not None and one.merged in places:
        found.append(_edge((x, y), places[one.merged], dashed=True))
    return found


def _edge(child: tuple[int, int], parent: tuple[int, int], *, dashed: bool) -> str:
    """A line; between lanes it leaves the child's at once where that took over the parent, and else just before the parent."""
    (x, y), (to_x, to_y) = child, parent
    turn = y if dashed else to_y - ROW_PX
    path = f"M{x} {y}V{turn}C{x} {turn + ROW_PX // 2} {to_x} {turn + ROW_PX // 2} {to_x} {turn + ROW_PX}V{to_y}" if x != to_x else f"M{x} {y}V{to_y}"
    return element("path", d=path, stroke_width="1.5", **({"stroke_dasharray": "4 3"} if dashed else {}))


def _point(one: Version, place: tuple[int, int], left: int, history: History) -> str:
    x, y = place
    ring = element("circle", cx=x, cy=y, r=8) if one.number in history.carried else ""
    statement = elide(visible(one.message or one.statements), STATEMENT_CELLS) if one.message or one.statements else ""
    return element(
        "g",
        title(_told(one, history)),
        element("circle", cx=x, cy=y, r=4.5, fill="currentColor"),
        ring,
        element("text", _heading(one, history), x=left, y=y + 4, fill="currentColor", stroke="none"),
        label(statement, left, y + 20, opacity=0.75, font_size=11),
    )


def _heading(one: Version, history: History) -> str:
    names = "".join(f" {name}" for name in history.names.get(one.number, ()))
    rest = _head(one, history).removeprefix(f"{one.number}{names}")
    return element("tspan", words(f"{one.number}{names}"), font_weight="bold") + words(rest)


def _head(one: Version, history: History) -> str:
    """Number, branches and tags, what it did, who, when, and past whom it was carried."""
    names = "".join(f" {name}" for name in history.names.get(one.number, ()))
    rows = f" +{one.added:,} −{one.removed:,}" if one.added or one.removed else ""
    past = sorted({winner for winner, _ in history.carried.get(one.number, ())})
    carried = f", carried past {', '.join(map(str, past))}" if past else ""
    return f"{one.number}{names} {one.operation}{rows}, {one.author or 'no author'}, {one.when:%Y-%m-%d %H:%M:%S}{carried}"


def _told(one: Version, history: History) -> str:
    """All that is known of a version, a long statement cut."""
    lines = [f"version {one.number} of branch {one.branch}: {_head(one, history)}"]
    lines += [text[:TOLD_CHARACTERS] for text in (one.message, one.statements) if text]
    lines += [f"past version {winner}: {why}" for winner, why in history.carried.get(one.number, ())]
    return "\n".join(lines)
