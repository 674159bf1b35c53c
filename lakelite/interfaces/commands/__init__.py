"""The dot commands, wherever statements come from: the prompt, a pipe, a file, an argument."""

from __future__ import annotations

from lakelite.interfaces.commands.registry import argument_kinds, command_candidates, help_candidates, is_quit, obey, shows_again
from lakelite.interfaces.commands.script import Script, separated

__all__ = ["Script", "argument_kinds", "command_candidates", "help_candidates", "is_quit", "obey", "separated", "shows_again"]
