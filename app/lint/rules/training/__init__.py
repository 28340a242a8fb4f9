"""Rules about the training that a job runs: its numbers, DeepSpeed, Lightning, what it scales."""

from lumitui.app.lint.rule import Rule
from lumitui.app.lint.rules.training import (
    deepspeed,
    lightning,
    memory,
    precision,
    scaling,
    zero,
)

RULES: tuple[Rule, ...] = (
    *precision.RULES,
    *deepspeed.RULES,
    *zero.RULES,
    *memory.RULES,
    *scaling.RULES,
    *lightning.RULES,
)
"""From single numbers to whole frameworks."""
