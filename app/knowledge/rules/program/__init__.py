"""Rules about a job's Python program: its text, its ranks, their GPUs, data and checkpoints."""

from lumitui.app.knowledge.rule import Rule
from lumitui.app.knowledge.rules.program import (
    argument_rules,
    device_rules,
    loader_rules,
    process_group_rules,
    rank_rules,
    saving_rules,
)

RULES: tuple[Rule, ...] = (
    *argument_rules.RULES,
    *rank_rules.RULES,
    *process_group_rules.RULES,
    *device_rules.RULES,
    *loader_rules.RULES,
    *saving_rules.RULES,
)
"""In the order in which a program comes to them."""
