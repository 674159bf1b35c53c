"""Completion in `%%lake` cells and `%lake` lines: the names that the prompt offers too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, completion_matcher

from lakelite.interfaces.repl.completion import candidates
from lakelite.interfaces.repl.vocabulary import Vocabulary

if TYPE_CHECKING:
    from lakelite.interfaces.notebook.magic import Notebook

_CELL, _LINE = "%%lake", "%lake "


def matcher(notebook: Notebook) -> Any:
    """What IPython asks; nothing is offered outside of SQL, or where no lake is open."""

    @completion_matcher(identifier="lakelite", priority=100, api_version=2)
    def complete(context: CompletionContext) -> SimpleMatcherResult:
        found = _sql_at(context)
        if found is None or notebook.lake is None:
            return SimpleMatcherResult(completions=[])
        offered = candidates(*found, Vocabulary(notebook.lake.connection))
        typed = found[0][found[1] - offered[0].length : found[1]] if offered else ""
        shown = [SimpleCompletion(one.text, type=one.about) for one in offered]
        return SimpleMatcherResult(completions=shown, suppress=True, matched_fragment=typed, ordered=True)

    complete.notebook = notebook
    return complete


def _sql_at(context: CompletionContext) -> tuple[str, int] | None:
    """The SQL around the cursor, and where the cursor is in it; None where it is no SQL."""
    lines = context.full_text.split("\n")
    number, column = context.cursor_line, context.cursor_position
    if lines[0].startswith(_CELL) and number > 0:
        return "\n".join(lines[1:]), sum(len(line) + 1 for line in lines[1:number]) + column
    lead = len(lines[number]) - len(lines[number].lstrip())
    start = lead + len(_LINE)
    if lines[number][lead:].startswith(_LINE) and column >= start:
        return lines[number][start:], column - start
    return None
