"""Rules about the training that a job runs: its numbers, DeepSpeed, Lightning, what it scales."""

from lumitui.app.knowledge.rule import Rule
from lumitui.app.knowledge.rules.training import (
    deepspeed_rules,
    lightning_rules,
    precision_rules,
)

RULES: tuple[Rule, ...] = (
    *precision_rules.RULES,
    *deepspeed_rules.RULES,
    *lightning_rules.RULES,
)
"""From single numbers to whole frameworks."""
