"""Line editing on a terminal: whole statements over several lines, history with search, suggestions, colours.

Promises: Enter runs what is whole and else begins a new line, Alt-Enter always begins one; Ctrl-C clears, Ctrl-R searches; what
speaks of a secret is neither kept nor suggested. Never runs anything.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import completion_is_selected, has_focus
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.styles import Style

from lakelite.interfaces import history
from lakelite.interfaces.commands import is_quit
from lakelite.interfaces.entry import continuation, grouped, is_quit_word, is_whole
from lakelite.interfaces.repl.completion import LakeCompleter
from lakelite.interfaces.repl.lexer import SqlLexer
from lakelite.language.tokens import left_open
from lakelite.mapping.system_errors import file_error

MENU_LINES = 6
STYLE = Style.from_dict(
    {
        "prompt": "bold",
        "auto-suggestion": "ansibrightblack",
        "pygments.keyword": "bold ansicyan",
        "pygments.keyword.type": "ansicyan",
        "pygments.name.function": "ansiyellow",
        "pygments.name.variable": "ansimagenta",
        "pygments.literal.string": "ansigreen",
        "pygments.literal.number": "ansimagenta",
        "pygments.comment": "ansibrightblack",
        "pygments.error": "ansired",
    }
)


class Editor:
    """Reads what is typed, one entry at a time."""

    def __init__(
        self,
        path: Path | None,
        note: Callable[[str], None],
        completer: LakeCompleter | None = None,
        *,
        input: Input | None = None,
        output: Output | None = None,
    ) -> None:
        """`path`: of the history; None: none is kept, and no other program is started. `note`: says what a person should know.

        `input`, `output`: of a terminal other than the process's own.
        """
        self._history = _History(path)
        self._note = note
        self._completer = completer
        self._session: PromptSession[str] = PromptSession(
            multiline=True,
            history=self._history,
            completer=completer,
            complete_in_thread=True,
            complete_while_typing=False,
            enable_history_search=True,
            search_ignore_case=True,
            auto_suggest=AutoSuggestFromHistory(),
            enable_open_in_editor=path is not None,
            enable_suspend=path is not None,
            lexer=PygmentsLexer(SqlLexer, sync_from_start=True),
            style=STYLE,
            include_default_pygments_style=False,
            color_depth=ColorDepth.DEPTH_1_BIT if os.environ.get("NO_COLOR") else None,
            key_bindings=_keys(),
            reserve_space_for_menu=MENU_LINES,
            input=input,
            output=output,
        )
        self._session.app.after_render += self._shown

    def read(self, prompt: str, draft: str = "") -> str:
        """What was typed. `draft`: what stands there at first. Raises EOFError for Ctrl-D, KeyboardInterrupt for Ctrl-C."""
        if self._completer is not None:
            self._completer.begin()
        if self._history.problem is not None:
            error = self._history.problem
            told = file_error(error.errno, error.strerror or str(error), f"use {error.filename}")
            self._note(f"note: no history is kept: {told.message}")
            self._history.problem = None

        def behind(width: int, line: int, wrapped: int) -> StyleAndTextTuples:
            opened = left_open(self._session.default_buffer.text)
            further = continuation(prompt, opened[line - 1] if 0 < line <= len(opened) else "")
            return [("class:prompt", further if not wrapped else " " * len(further))]

        return self._session.prompt([("class:prompt", prompt)], prompt_continuation=behind, default=draft)

    def _shown(self, app: Application[str]) -> None:
        """The first prompt stands there: now what it did not need can be loaded."""
        app.after_render -= self._shown
        if self._completer is not None:
            self._completer.warm_up()


class _History(InMemoryHistory):
    """The file of the history. A history that cannot be kept is no reason to leave: `problem` says it once."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._is_kept = path is not None
        self.problem: OSError | None = None
        super().__init__(grouped(self._lines()))

    def _lines(self) -> Sequence[str]:
        try:
            return () if self._path is None else history.load(self._path)
        except OSError as error:
            self._stop(error)
            return ()

    def _stop(self, error: OSError) -> None:
        self._is_kept, self.problem = False, error

    def append_string(self, string: str) -> None:
        if history.may_keep(string) and not is_quit(string) and not is_quit_word(string):
            super().append_string(string)

    def store_string(self, string: str) -> None:
        super().store_string(string)
        if self._is_kept and self._path is not None:
            try:
                history.append(self._path, string)
            except OSError as error:
                self._stop(error)


def _keys() -> KeyBindings:
    keys = KeyBindings()
    typing = has_focus(DEFAULT_BUFFER)

    @keys.add("enter", filter=typing & ~completion_is_selected)
    def _enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_whole(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.newline(copy_margin=True)

    @keys.add("enter", filter=typing & completion_is_selected)
    def _take(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    @keys.add("escape", "enter", filter=typing)
    def _newline(event: KeyPressEvent) -> None:
        event.current_buffer.newline()

    return keys
