"""The prompt's history: one line per entry in a private file of the user's.

Promises: the file is readable by its owner only, and a statement that speaks of a secret or a password is never written.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

KEPT_LINES = 2_000
_PRIVATE = re.compile(r"secret|password", re.IGNORECASE)


def history_path() -> Path:
    """`$XDG_STATE_HOME/lakelite/history`, or the same below `~/.local/state`."""
    state = os.environ.get("XDG_STATE_HOME")
    return Path(state or os.path.expanduser("~/.local/state")) / "lakelite" / "history"


def load(path: Path) -> list[str]:
    """The last lines of the history, oldest first; none if there is no file yet. Shortens a file that grew long. Raises OSError."""
    if not path.exists():
        return []
    lines = path.read_text("utf-8", errors="replace").splitlines()
    if len(lines) > 2 * KEPT_LINES:
        path.write_text("".join(line + "\n" for line in lines[-KEPT_LINES:]), "utf-8")
    return lines[-KEPT_LINES:]


def may_keep(entry: str) -> bool:
    """Whether this statement may be stored."""
    return _PRIVATE.search(entry) is None


def append(path: Path, entry: str) -> None:
    """Add an entry, line by line. The caller has asked `may_keep`. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "w", encoding="utf-8", errors="replace") as file:
        file.write("".join(line + "\n" for line in entry.splitlines() if line.strip()))
