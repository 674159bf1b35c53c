"""What is offered behind what is typed: keywords, functions, tables, columns with types, files, versions, settings, dot commands.

`candidates` is a function of a text and a vocabulary; `LakeCompleter` shows what it gives in prompt_toolkit's menu.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from lakelite.interfaces.commands import command_candidates
from lakelite.interfaces.repl.context import Context, context_at
from lakelite.interfaces.repl.vocabulary import Relation, Vocabulary
from lakelite.interfaces.repl.words import KEYWORDS, STATEMENTS, TYPES
from lakelite.interfaces.values import visible
from lakelite.language.tokens import folded, shown_name, unquote
from lakelite.model import MAIN_SCHEMA, RESERVED_SCHEMA
from lakelite.records import dataclass

MOST_FILES = 500
FILE, DIRECTORY = "file", "directory"
_SHOWN = ("TABLES", "ALL", "ALL TABLES", "SCHEMAS", "BRANCHES", "TAGS", "CREATE TABLE", "CREATE VIEW")
_CLAUSES = (
    "WHERE", "JOIN", "LEFT JOIN", "ON", "USING", "GROUP BY", "ORDER BY", "HAVING", "QUALIFY", "LIMIT", "SET", "VALUES", "SELECT", "AT (VERSION => ",
    "AT (TIMESTAMP => ", "UNION ALL", "CROSS JOIN", "RETURNING", "DEFAULT VALUES", "ZORDER BY",
)  # fmt: skip
_WITHIN = frozenset(("SELECT", "FROM", "WITH", "VALUES", "SET", "INSERT", "UPDATE", "DELETE", "TABLE", "CHECK", "END", "DROP"))
_FOLLOWS_COLUMN = sorted((KEYWORDS - frozenset(STATEMENTS)) | _WITHIN | TYPES)


@dataclass(frozen=True, slots=True)
class Candidate:
    """`text` takes the place of the `length` characters in front of the cursor; `about` is shown beside it."""

    text: str
    about: str
    length: int


def candidates(text: str, cursor: int, vocabulary: Vocabulary) -> list[Candidate]:
    """What can stand at the cursor, the likeliest first. An empty list where nothing is known."""
    line = text[:cursor].rpartition("\n")[2].lstrip()
    if line.startswith((".", "\\")) and "\n" not in text[:cursor].strip():
        return list(_of_command(line, vocabulary))
    context = context_at(text, cursor)
    found = dict.fromkeys(_chosen(context, vocabulary))
    return [Candidate(name, about, len(context.prefix)) for name, about in found]


def _chosen(context: Context, vocabulary: Vocabulary) -> Iterator[tuple[str, str]]:
    """(text, about) of what fits what is typed."""
    for name, about in _all(context, vocabulary):
        if _fits(name, context.prefix):
            yield name, about


def _all(context: Context, vocabulary: Vocabulary) -> Iterable[tuple[str, str]]:
    match context.kind:
        case "statement":
            return _keywords(STATEMENTS, context.prefix)
        case "relation":
            return _relations(context, vocabulary)
        case "member":
            return _members(context, vocabulary)
        case "column":
            return _expressions(context, vocabulary)
        case "clause":
            return _keywords(_CLAUSES, context.prefix)
        case "version":
            return [(str(number), about) for number, about in vocabulary.versions()]
        case "setting":
            return [(name, f"{value}: {about}") for name, value, about in vocabulary.settings()]
        case "show":
            return [*_keywords(_SHOWN, context.prefix), *((name, value) for name, value, _ in vocabulary.settings())]
        case "schema":
            return [(shown_name(name), "schema") for name in vocabulary.schemas()]
        case "branch":
            return [(shown_name(name), "branch") for name in vocabulary.branches()]
        case "type":
            return _keywords(sorted(TYPES), context.prefix)
        case "file":
            return _files(context.prefix)
    return []


def _fits(name: str, prefix: str) -> bool:
    """Whether a name is what a prefix may become; a quoted one is found without its quotes too."""
    typed = folded(prefix)
    return folded(name).startswith(typed) or (name[:1] == '"' and folded(unquote(name)).startswith(typed.removeprefix('"')))


def _keywords(words: Iterable[str], prefix: str) -> list[tuple[str, str]]:
    """In the case in which the user types."""
    return [(word.lower() if prefix and prefix == prefix.lower() else word, "") for word in words]


def _relations(context: Context, vocabulary: Vocabulary) -> Iterator[tuple[str, str]]:
    for name in context.ctes:
        yield shown_name(name), "with"
    for one in vocabulary.relations():
        yield _qualified(one), _about(one)
    for name in vocabulary.schemas():
        if name != MAIN_SCHEMA:
            yield f"{shown_name(name)}.", "schema"
    if context.prefix:
        yield from _functions(("table_changes", *(f for f in vocabulary.functions if f.startswith("read_"))))


def _qualified(one: Relation) -> str:
    return shown_name(one.name) if one.schema == MAIN_SCHEMA else f"{shown_name(one.schema)}.{shown_name(one.name)}"


def _about(one: Relation) -> str:
    return f"{len(one.columns)} columns" if len(one.columns) != 1 else "1 column"


def _members(context: Context, vocabulary: Vocabulary) -> Iterator[tuple[str, str]]:
    """Behind a dot: the columns of a table or alias, or the tables of a schema."""
    *above, last = context.qualifier
    named = None if above else dict(context.tables).get(folded(last))
    schema, name = named if named is not None else (above[-1] if above else None, last)
    table = vocabulary.find(schema, name)
    for column, kind in table.columns if table else ():
        yield shown_name(column), kind
    for one in [*vocabulary.relations(), *(vocabulary.system_views() if folded(last) == RESERVED_SCHEMA else [])]:
        if not above and folded(one.schema) == folded(last):
            yield shown_name(one.name), _about(one)


def _expressions(context: Context, vocabulary: Vocabulary) -> Iterator[tuple[str, str]]:
    """Columns of the statement's tables, their names, functions and keywords; the last two only once something is typed of them."""
    for alias, (schema, name) in context.tables:
        table = vocabulary.find(schema, name)
        for column, kind in table.columns if table else ():
            yield shown_name(column), f"{kind} · {alias}"
    for alias, (_, name) in context.tables:
        yield shown_name(alias), name
    if context.prefix or not context.tables:
        yield from _keywords(_FOLLOWS_COLUMN, context.prefix)
    if context.prefix:
        yield from _functions(vocabulary.functions)


def _functions(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        yield f"{name}(", "function"


def _files(prefix: str) -> list[tuple[str, str]]:
    """The files and directories that a path may become; none where the directory cannot be read. Hidden ones only if a dot is typed."""
    folder, _, typed = prefix.rpartition("/")
    shown = f"{folder}/" if "/" in prefix else ""
    try:
        with os.scandir(os.path.expanduser(shown) or ".") as entries:
            found = [(e.name, e.is_dir()) for e in entries if e.name.startswith(typed) and (typed or not e.name.startswith("."))]
    except OSError:
        return []
    names = [(f"{shown}{name}/" if is_folder else f"{shown}{name}").replace("'", "''") for name, is_folder in sorted(found)[:MOST_FILES]]
    return [(name, DIRECTORY if name.endswith("/") else FILE) for name in names]


def _of_command(line: str, vocabulary: Vocabulary) -> Iterator[Candidate]:
    """The name of a dot command, or its argument."""
    name, space, argument = line.partition(" ")
    if not space:
        found: Iterable[tuple[str, str]] = command_candidates()
        typed = name
    else:
        typed = argument.rpartition(" ")[2]
        found = _arguments(name, argument, typed, vocabulary)
    for text, about in found:
        if folded(text).startswith(folded(typed)):
            yield Candidate(text, about, len(typed))


def _arguments(name: str, argument: str, typed: str, vocabulary: Vocabulary) -> Iterable[tuple[str, str]]:
    from lakelite.interfaces.commands import argument_kinds, help_candidates

    for kind in argument_kinds(name, argument.count(" ")):
        match kind:
            case "file":
                yield from _files(typed)
            case "table":
                yield from ((_qualified(one), _about(one)) for one in vocabulary.relations())
            case "version":
                yield from ((str(number), about) for number, about in vocabulary.versions())
            case "help":
                yield from help_candidates()
            case _:
                yield kind, ""


class LakeCompleter(Completer):
    """Shows the candidates in the prompt's menu."""

    def __init__(self, vocabulary: Vocabulary, *, files: bool = True) -> None:
        """`files`: whether names of files are offered."""
        self._vocabulary = vocabulary
        self._files = files

    def begin(self) -> None:
        """A prompt begins: names are asked for anew."""
        self._vocabulary.forget()

    def warm_up(self) -> None:
        """Begins to load what the first completion would wait for."""
        self._vocabulary.warm_up()

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        for one in candidates(document.text, document.cursor_position, self._vocabulary):
            if one.about in (FILE, DIRECTORY) and not self._files:
                continue
            yield Completion(one.text, -one.length, visible(one.text), visible(one.about))
