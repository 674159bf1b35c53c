"""Histories of transactions that read and append to lists, and what in them no order of one after the other explains.

Owns the inference (after Adya's phenomena, and Kingsbury and Alvaro's way to find them in histories): each value is appended once, so a
list that was read says whose versions it is made of, and in which order. From that follow the dependencies between transactions, and a
cycle of them is an anomaly. Pure; knows nothing of lakelite but the names of its levels.

Keys that begin with "s" are sets: their order says nothing, and a value that is missing was not there yet.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

Edge = tuple[int, int]
Graph = Mapping[int, Iterable[int]]

FORBIDDEN = {
    "serializable": ("G0", "G1c", "G-single", "G2"),
    "write serializable": ("G0", "G1c", "G-single", "G2"),  # but for what blind appends added: `Dependencies.of`
    "snapshot": ("G0", "G1c", "G-single"),
}


@dataclass(frozen=True, slots=True)
class Op:
    """`kind`: "append" of the one value, or "read" of all of them."""

    kind: str
    key: str
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Ran:
    """A transaction. `process`: who ran it, one after the other; `landed`: it was acknowledged; else it was refused or taken back."""

    process: int
    ops: tuple[Op, ...]
    landed: bool = True

    def appended(self, key: str) -> tuple[int, ...]:
        return tuple(v for op in self.ops if op.kind == "append" and op.key == key for v in op.values)

    @property
    def is_blind(self) -> bool:
        """It only added rows: no list, which is changed in its place."""
        return all(op.kind == "append" and _is_set(op.key) for op in self.ops)


def _is_set(key: str) -> bool:
    return key.startswith("s")


def anomalies(history: Sequence[Ran], final: Mapping[str, tuple[int, ...]], level: str) -> list[str]:
    """What is wrong, a line each, the phenomenon first; none if all is well. `final`: what each key held when all was over."""
    wrong = [*_internal(history), *_doubled(history, final), *_order(history, final), *_aborted(history), *_intermediate(history)]
    wrong += [f"lost: {v} was acknowledged, and is not in {key}" for key, v in _acknowledged(history) if v not in final.get(key, ())]
    return wrong + [found for found in cycles(Dependencies.of(history, final, level)) if found.split(":")[0] in FORBIDDEN[level]]


def _acknowledged(history: Sequence[Ran]) -> Iterator[tuple[str, int]]:
    return ((op.key, op.values[0]) for ran in history if ran.landed for op in ran.ops if op.kind == "append")


def _reads(history: Sequence[Ran]) -> Iterator[tuple[int, Op, tuple[int, ...]]]:
    """The transaction, what it read, and that without what it had appended itself."""
    for number, ran in enumerate(history):
        own = {v for op in ran.ops if op.kind == "append" for v in op.values}
        for op in ran.ops:
            if op.kind == "read":
                yield number, op, tuple(v for v in op.values if v not in own)


def _internal(history: Sequence[Ran]) -> Iterator[str]:
    """Each sees what it did itself, behind all others' values."""
    for ran in history:
        own: dict[str, list[int]] = defaultdict(list)
        for op in ran.ops:
            if op.kind == "append":
                own[op.key] += op.values
            elif own[op.key] and (not {*own[op.key]} <= {*op.values} if _is_set(op.key) else [*op.values[-len(own[op.key]) :]] != own[op.key]):
                yield f"internal: {op.key} was {op.values} for the one that had appended {own[op.key]}"


def _doubled(history: Sequence[Ran], final: Mapping[str, tuple[int, ...]]) -> Iterator[str]:
    seen = [(key, values) for key, values in final.items()] + [(op.key, op.values) for _, op, _ in _reads(history)]
    return (f"doubled: {key} held {values}" for key, values in seen if len({*values}) < len(values))


def _order(history: Sequence[Ran], final: Mapping[str, tuple[int, ...]]) -> Iterator[str]:
    """Lists only grow at their end."""
    for _, op, others in _reads(history):
        whole = final.get(op.key, ())
        if not (_is_set(op.key) or whole[: len(others)] == others) or not {*others} <= {*whole}:
            yield f"order: {op.key} was {op.values}, and became {whole}"


def _aborted(history: Sequence[Ran]) -> Iterator[str]:
    never = {op.values[0] for ran in history if not ran.landed for op in ran.ops if op.kind == "append"}
    return (f"G1a: {op.key} was {op.values}; {v} was taken back" for _, op, others in _reads(history) for v in others if v in never)


def _intermediate(history: Sequence[Ran]) -> Iterator[str]:
    writer = {op.values[0]: ran for ran in history for op in ran.ops if op.kind == "append"}
    for _, op, others in _reads(history):
        for ran in {id(w): w for v in others if (w := writer.get(v))}.values():
            if not {*ran.appended(op.key)} <= {*others}:
                yield f"G1b: {op.key} was {op.values}, with a part of {ran.appended(op.key)}"


# Dependencies, and cycles of them.


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Who has to stand before whom: `ww` wrote the version before, `wr` wrote what the other read, `rw` read what the other replaced,
    `order` ran before it in the same process.
    """

    ww: set[Edge] = field(default_factory=set)
    wr: set[Edge] = field(default_factory=set)
    rw: set[Edge] = field(default_factory=set)
    order: set[Edge] = field(default_factory=set)

    @classmethod
    def of(cls, history: Sequence[Ran], final: Mapping[str, tuple[int, ...]], level: str) -> Dependencies:
        """Of what landed. At the default level a read need not have seen what blind appends added, so nothing follows from that."""
        writer = {op.values[0]: n for n, ran in enumerate(history) if ran.landed for op in ran.ops if op.kind == "append"}
        found = cls()
        for key, values in final.items():
            if not _is_set(key):
                found.ww.update((writer[a], writer[b]) for a, b in pairwise(v for v in values if v in writer))
        for number, op, others in _reads(history):
            if history[number].landed:
                seen, later = _around(op.key, others, final.get(op.key, ()))
                found.wr.update((writer[v], number) for v in seen if v in writer)
                found.rw.update(
                    (number, writer[v]) for v in later if v in writer and not (level == "write serializable" and history[writer[v]].is_blind)
                )
        last: dict[int, int] = {}
        for number, ran in enumerate(history):
            if ran.landed:
                found.order.update({(last[ran.process], number)} if ran.process in last else ())
                last[ran.process] = number
        for edges in (found.ww, found.wr, found.rw):
            edges -= {(n, n) for n in range(len(history))}
        return found


def _around(key: str, seen: tuple[int, ...], whole: tuple[int, ...]) -> tuple[Sequence[int], Sequence[int]]:
    """The values whose writers stand before one who read `seen`, and those whose writers stand behind; of a list the nearest ones suffice."""
    if _is_set(key):
        return seen, [v for v in whole if v not in {*seen}]
    return seen[-1:], whole[len(seen) :][:1]


def cycles(found: Dependencies) -> Iterator[str]:
    """The phenomena: G0 is a cycle of writes, G1c one of writes and reads, G-single one with a single rw, G2 one with more of them."""
    for first, edges in (("G0", found.ww), ("G1c", found.ww | found.wr | found.order)):
        yield from (f"{first}: {_cycle(group, edges)}" for group in components(_graph(edges)))
    rest = found.ww | found.wr | found.order
    graph = _graph(rest)
    for group in components(_graph(rest | found.rw)):
        within = {*group}
        single = next((e for e in sorted(found.rw) if within.issuperset(e) and _path(graph, e[1], e[0])), None)
        yield f"G-single: {single} and {_path(graph, single[1], single[0])}" if single else f"G2: {_cycle(group, rest | found.rw)}"


def _graph(edges: Iterable[Edge]) -> dict[int, list[int]]:
    graph: dict[int, list[int]] = defaultdict(list)
    for a, b in edges:
        graph[a].append(b)
    return graph


def _cycle(group: Sequence[int], edges: Iterable[Edge]) -> list[int]:
    """A cycle through the first of a component."""
    graph = _graph(e for e in edges if {*group}.issuperset(e))
    paths = (path for after in graph[group[0]] if (path := _path(graph, after, group[0])))
    return min(([group[0], *path] for path in paths), key=len)


def _path(graph: Graph, start: int, end: int) -> list[int]:
    """A shortest way, both ends with it; empty where there is none."""
    back: dict[int, int] = {start: start}
    line = deque([start])
    while line and end not in back:
        here = line.popleft()
        for after in graph.get(here, ()):
            if after not in back:
                back[after] = here
                line.append(after)
    way = [end] if end in back else []
    while way and way[-1] != start:
        way.append(back[way[-1]])
    return way[::-1]


def components(graph: Graph) -> list[list[int]]:
    """The strongly connected components of more than one node (Tarjan's, without recursion)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    found: list[list[int]] = []
    for root in graph:
        work = [] if root in index else [(root, iter(graph[root]))]
        while work:
            node, rest = work[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                stack.append(node)
                on_stack.add(node)
            child = next((c for c in rest if c not in index or c in on_stack), None)
            if child is not None and child not in index:
                work.append((child, iter(graph.get(child, ()))))
            elif child is not None:
                low[node] = min(low[node], index[child])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    cut = stack.index(node)
                    found += [stack[cut:]] if len(stack) - cut > 1 else []
                    on_stack -= {*stack[cut:]}
                    del stack[cut:]
    return found
