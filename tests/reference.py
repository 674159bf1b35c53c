"""The tables of the guide that follow from the code, written into lakelite/docs: `python tests/reference.py` after a change of the code.

A page says where: `<!-- begin: NAME (tests/reference.py writes this) -->` … `<!-- end -->`. A test asserts that nothing would change.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lakelite
from lakelite import errors, settings
from lakelite.__main__ import EPILOG, _parser
from lakelite.bounds import _BOUNDS, _CHOICES, TABLE_OPTIONS
from lakelite.interfaces.commands.registry import COMMANDS
from lakelite.language.refusals import BY_FIRST_WORDS, CREATED
from lakelite.model import Limits

DOCS = Path(lakelite.__file__).parent / "docs"
_PART = re.compile(r"(<!-- begin: ([^(]+) \(tests/reference\.py writes this\) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(heading: str, rows: Iterator[tuple[str, ...]]) -> str:
    columns = heading.split(" | ")
    return "\n".join(f"| {' | '.join(row)} |" for row in [columns, ["---"] * len(columns), *([cell.replace("|", "\\|") for cell in r] for r in rows)])


def options_of_the_command_line() -> str:
    def rows() -> Iterator[tuple[str, ...]]:
        for action in _parser()._actions:
            value = "" if action.nargs == 0 else " " + (action.metavar or "|".join(map(str, action.choices or ())))
            names = ", ".join(f"`{name}{value}`" for name in action.option_strings) or f"`{action.metavar}`"
            yield names, str(action.help)

    return table("option | what it does", rows())


def end_of_help() -> str:
    return "\n".join(f"- {line}" for line in EPILOG.splitlines() if line)


def commands() -> str:
    return table("command | what it does", ((", ".join(f"`{name}`" for name in (c.title, *c.names[1:])), c.about) for c in COMMANDS))


def _range(name: str) -> str:
    if name in _CHOICES:
        return ", ".join(_CHOICES[name])
    low, high = _BOUNDS[name]
    return f"{low:,} to {high:,}"


def limits() -> str:
    defaults = Limits()
    return table(
        "setting | default | range | what it is", ((f"`{n}`", str(getattr(defaults, n)), _range(n), about) for n, about in settings._ABOUT.items())
    )


def settings_of_the_connection() -> str:
    def rows() -> Iterator[tuple[str, ...]]:
        for name in sorted(settings.OF_CONNECTION):
            about, most = settings.TEXTS.get(name, ("what a commit promises of what was handed out", 0))
            yield f"`{name}`", f"a text of at most {most:,} characters" if most else ", ".join(lakelite.model.ISOLATION_LEVELS), about

    return table("setting | value | what it is", rows())


def settings_of_duckdb() -> str:
    return ", ".join(f"`{name}`" for name in sorted(settings.DUCKDB_SETTINGS)) + "."


def options_of_a_table() -> str:
    return ", ".join(f"`{name}`" for name in TABLE_OPTIONS) + "."


def _classes(base: type, depth: int = 0) -> Iterator[tuple[type, int]]:
    yield base, depth
    for one in sorted(base.__subclasses__(), key=lambda one: (bool(one.__subclasses__()), one.__name__)):
        yield from _classes(one, depth + 1)


def errors_() -> str:
    def rows() -> Iterator[tuple[str, ...]]:
        yield "`Warning`", "", "Exception", _summary(errors.Warning)
        for one, _ in _classes(errors.Error):
            state = f"`{one.sqlstate}`" if one.sqlstate else ""
            yield f"`{one.__name__}`", state, one.__mro__[1].__name__, _summary(one)

    return table("class | SQLSTATE | is a | what it means", rows())


def conflict() -> str:
    doc = inspect.cleandoc(errors.Conflict.__doc__ or "")
    fields = ", ".join(f"`{one.name}`" for one in dataclasses.fields(errors.Conflict))
    return f"{fields}.\n\n{doc}"


def refused_statements() -> str:
    def rows() -> Iterator[tuple[str, ...]]:
        created = [(f"CREATE {what}", hint) for what, hint in CREATED.items()]
        yield from ((f"`{what}`", hint) for what, hint in sorted([*created, *((what, hint) for _, what, hint in BY_FIRST_WORDS)]))

    return table("statement | instead", rows())


def _summary(thing: Any) -> str:
    return inspect.cleandoc(thing.__doc__ or "").partition("\n\n")[0].replace("\n", " ")


def _signature(function: Callable[..., Any]) -> str:
    parts: list[str] = []
    kinds = inspect.Parameter
    before = None
    for one in inspect.signature(function).parameters.values():
        if one.name == "self":
            continue
        if one.kind is kinds.KEYWORD_ONLY and before is not kinds.KEYWORD_ONLY:
            parts.append("*")
        before = one.kind
        default = "" if one.default is kinds.empty else f" = {one.default!r}"
        parts.append(f"{one.name}: {one.annotation}{default}" if one.annotation is not kinds.empty else f"{one.name}{default}")
    returned = inspect.signature(function).return_annotation
    return f"({', '.join(parts)})" + ("" if returned is inspect.Signature.empty else f" -> {returned}")


def public(kind: type) -> Iterator[tuple[str, Any]]:
    """The public members of a class, its own bases' among them, in the order in which they are defined."""
    seen: dict[str, Any] = {}
    for one in kind.__mro__:
        if one.__module__.startswith("lakelite"):
            seen |= {name: value for name, value in vars(one).items() if name not in seen}
    for name, value in seen.items():
        if (not name.startswith("_") or name == "__arrow_c_stream__") and not isinstance(value, type):
            yield name, value


def _member(name: str, value: Any, fields: set[str]) -> str | None:
    if isinstance(value, property):
        can = ", can be set" if value.fset else ""
        return f"**`{name}`** (attribute{can})\n\n{_doc(value)}"
    if inspect.isfunction(value):
        return f"**`{name}{_signature(value)}`**\n\n{_doc(value)}"
    assert name in fields, f"{name} is neither a method nor a property"
    return None


def _doc(thing: Any) -> str:
    assert thing.__doc__, f"{thing} has no docstring"
    return inspect.cleandoc(thing.__doc__)


def _class(name: str, kind: type) -> str:
    fields = {one.name for one in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    members = [told for member, value in public(kind) if (told := _member(member, value, fields))]
    return "\n\n".join([f"### {name}", _doc(kind), *members])


def python() -> str:
    """The public names: functions and classes with all their members; errors have a page of their own."""
    values = {name: getattr(lakelite, name) for name in lakelite.__all__}
    parts: list[str] = ["### connect", f"**`lakelite.connect{_signature(values['connect'])}`**\n\n{_doc(values['connect'])}"]
    parts += [_class(name, values[name]) for name in ("Connection", "Cursor", "CommitResult", "Resolution")]
    told = {"connect", "Connection", "Cursor", "CommitResult", "Resolution", "Conflict"}
    told |= {name for name, value in values.items() if isinstance(value, type) and issubclass(value, (errors.Error, errors.Warning))}
    rest = {name: value for name, value in values.items() if name not in told}
    parts.append("### The names of PEP 249")
    parts.append(table("name | what it is", ((f"`{name}`", _about(name, value)) for name, value in sorted(rest.items()))))
    return "\n\n".join(parts)


def _about(name: str, value: Any) -> str:
    if isinstance(value, str | int):
        return "the version of the package" if name == "__version__" else repr(value)
    if inspect.isfunction(value):
        return _summary(value)
    if isinstance(value, type):
        return f"`{value.__module__}.{value.__name__}`"
    return f"equals the type codes of {name} columns in `cursor.description`"


PARTS: dict[str, Callable[[], str]] = {
    "options of the command line": options_of_the_command_line,
    "end of --help": end_of_help,
    "commands": commands,
    "limits": limits,
    "settings of the connection": settings_of_the_connection,
    "settings of DuckDB": settings_of_duckdb,
    "options of a table": options_of_a_table,
    "errors": errors_,
    "Conflict": conflict,
    "refused statements": refused_statements,
    "Python": python,
}


def written(text: str) -> str:
    """A page with its parts as the code has them. KeyError: a part that is none of ours."""
    return _PART.sub(lambda part: f"{part[1]}\n{PARTS[part[2]]()}\n\n{part[3]}", text)


def parts_in(text: str) -> list[str]:
    return [part[2] for part in _PART.finditer(text)]


if __name__ == "__main__":
    for page in sorted(DOCS.glob("*.md")):
        page.write_text(written(page.read_text("utf-8")), "utf-8")
