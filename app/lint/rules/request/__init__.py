"""Rules about what a job asks of Slurm: where, how long, how many, and what that is billed."""

from lumitui.app.lint.rule import Rule
from lumitui.app.lint.rules.request import (
    cores,
    ends,
    gpus,
    limits,
    memory,
    price,
    queue,
    steps,
    tasks,
)

RULES: tuple[Rule, ...] = (
    *queue.RULES,
    *limits.RULES,
    *ends.RULES,
    *tasks.RULES,
    *gpus.RULES,
    *cores.RULES,
    *memory.RULES,
    *price.RULES,
    *steps.RULES,
)
"""In the order of a script's first lines."""
