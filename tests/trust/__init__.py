"""The proof of what lakelite promises: harnesses that count, each in a module of its own, and one command that prints their figures.

    python -m tests.trust [--tier 0|1|2] [--only NAME] [--seed N] [--write]

A harness is a module of this package, named in `registry.NAMES`, with

    PROMISE   text: what must hold
    HOW       text: how that is tried
    SIZES     its size in tiers 0, 1 and 2, in a unit of its own (0: not in this tier)
    run(seed, size) → Figures

`run` is a plain function: it raises only where the harness itself is broken, and what does not hold is a `Failure` in its figures,
with a script that shows it again. Same seed and size, same cases. Tests run it at the size of tier 1 (`test_*.py` beside it).
"""
