"""The named steps of a commit, in their order (reliability.md's durable commit), and the place where a test can stop at one.

In use nothing happens here: `reached` calls `hook`, which does nothing unless a test has put something else there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

Step = Literal[
    "begin", "scan", "write", "sync_files", "sync_directory", "lock", "resolve", "sync_again", "publish", "commit", "committed", "checkpoint",
    "answer",
]  # fmt: skip
STEPS: tuple[Step, ...] = get_args(Step)


def _pass(step: Step) -> None:
    return None


hook: Callable[[Step], None] = _pass


def reached(step: Step) -> None:
    """Called when a step has been done (`commit`: when it is about to be)."""
    hook(step)
