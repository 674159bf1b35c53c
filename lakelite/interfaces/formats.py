"""Results in the formats that other programs read: tsv, html, insert, latex.

Promises: one batch of rows is held at a time; what stands in a value or a name cannot leave its place in the format.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, TextIO

from lakelite.interfaces.values import is_numeric, plain, visible
from lakelite.storage.type_text import Type, read

INSERT_ROWS = 100
_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
_TSV = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_LATEX = str.maketrans(
    {c: f"\\{c}" for c in "&%$#_{}"} | {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "<": "\\textless{}"}
    | {">": "\\textgreater{}", "|": "\\textbar{}"}
)  # fmt: skip
_NESTED = ("]", ")")
_BUILT = frozenset(("LIST", "ARRAY", "MAP", "STRUCT", "TUPLE", "DECIMAL"))
CONSTANT = "CONSTANT OF SQL"
_BARE = frozenset(("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"))

Row = Sequence[Any]


def tsv(names: Sequence[str], types: Sequence[str], rows: Iterable[Row], out: TextIO) -> None:
    """A header, NULL as \\N, and tabs and line ends in values written as \\t and \\n, as PostgreSQL's COPY has it."""
    out.write("\t".join(name.translate(_TSV) for name in names) + "\n")
    for row in rows:
        out.write("\t".join("\\N" if v is None else plain(v, t).translate(_TSV) for v, t in zip(row, types, strict=True)) + "\n")


def html(names: Sequence[str], types: Sequence[str], rows: Iterable[Row], out: TextIO) -> None:
    """A table element; NULL is a cell of class null."""
    out.write("<table>\n<thead>\n<tr>" + "".join(f'<th scope="col">{_html(name)}</th>' for name in names) + "</tr>\n</thead>\n<tbody>\n")
    right = [' style="text-align: right"' if is_numeric(t) else "" for t in types]
    for row in rows:
        cells = (
            '<td class="null">NULL</td>' if v is None else f"<td{r}>{_html(plain(v, t))}</td>" for v, t, r in zip(row, types, right, strict=True)
        )
        out.write("<tr>" + "".join(cells) + "</tr>\n")
    out.write("</tbody>\n</table>\n")


def _cell(value: object, type_name: str, style: str) -> str:
    return '<td class="null">NULL</td>' if value is None else f"<td{style}>{_html(plain(value, type_name))}</td>"


def _html(text: str) -> str:
    return visible(text).translate(_HTML)


def latex(names: Sequence[str], types: Sequence[str], rows: Iterable[Row], out: TextIO) -> None:
    """A tabular environment."""
    out.write("\\begin{tabular}{" + "".join("r" if is_numeric(t) else "l" for t in types) + "}\n\\hline\n")
    out.write(" & ".join(map(_latex, names)) + " \\\\\n\\hline\n")
    for row in rows:
        out.write(" & ".join(_latex(plain(v, t)) for v, t in zip(row, types, strict=True)) + " \\\\\n")
    out.write("\\hline\n\\end{tabular}\n")


def _latex(text: str) -> str:
    return visible(text).translate(_LATEX)


def insert(table: str, types: Sequence[str], rows: Iterable[Row], out: TextIO) -> None:
    """INSERT statements of at most 100 rows each. `table`: as it is written in SQL. Values come back as they are, but for what Python
    has no values for (months of an INTERVAL, nanoseconds, infinite times, the member of a UNION); of those the text is exact, as `is_exact`
    tells, but for a UNION."""
    lines = ("(" + ", ".join(sql_literal(v, t) for v, t in zip(row, types, strict=True)) + ")" for row in rows)
    while batch := list(islice(lines, INSERT_ROWS)):
        out.write(f"INSERT INTO {table} VALUES\n" + ",\n".join(batch) + ";\n")


def sql_literal(value: object, type_name: str) -> str:
    """A value, or for any type DuckDB's text of it, as a constant of SQL of exactly that type; a text of type CONSTANT is one."""
    if type_name == CONSTANT:
        return str(value)
    if value is not None and not isinstance(value, str) and type_name.endswith(_NESTED) and (kind := read(type_name)).name in _BUILT:
        return f"{_constant(value, kind)}::{type_name}"
    return _leaf(value, type_name)


def is_exact(type_name: str) -> bool:
    """Whether Python holds every value of a type as it is; the text of the others is to be asked for."""
    return type_name in _BARE or type_name == "VARCHAR" or (type_name.startswith("DECIMAL") and type_name.endswith(")"))


def _constant(value: Any, kind: Type) -> str:
    if value is None:
        return "NULL"
    members = [member for _, member in kind.members]
    match kind.name:
        case "LIST" | "ARRAY":
            return "[" + ", ".join(_constant(v, members[0]) for v in value) + "]"
        case "MAP":
            return "MAP {" + ", ".join(f"{_constant(k, members[0])}: {_constant(v, members[1])}" for k, v in _pairs(value, members[0])) + "}"
        case "STRUCT":
            return "{" + ", ".join(f"{_text(n)}: {_constant(v, m)}" for (n, m), v in zip(kind.members, value.values(), strict=True)) + "}"
        case "TUPLE":
            return "row(" + ", ".join(_constant(v, m) for v, m in zip(value, members, strict=True)) + ")"
    return _leaf(value, kind.text)


def _pairs(value: dict[Any, Any], key: Type) -> Iterable[tuple[Any, Any]]:
    """A map's entries; one whose keys cannot be hashed comes as its keys and values."""
    return zip(value["key"], value["value"], strict=True) if key.members else value.items()


def _leaf(value: object, type_name: str) -> str:
    if value is None:
        return "NULL"
    text = plain(value, type_name)
    if type_name == "VARCHAR":
        return _text(text)
    return text if is_exact(type_name) else f"{_text(text)}::{type_name}"


def _text(text: str) -> str:
    """A quoted text; no string of SQL can have a NUL in it."""
    parts = ["'" + part.replace("'", "''") + "'" for part in text.split("\0")]
    return parts[0] if len(parts) == 1 else "(" + " || chr(0) || ".join(parts) + ")"
