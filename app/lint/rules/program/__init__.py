"""Rules about a job's Python program: its text, its ranks, their GPUs, data and checkpoints."""

from lumitui.app.lint.rule import Rule
from lumitui.app.lint.rules.program import (
    arguments,
    devices,
    group,
    loaders,
    offline,
    ranks,
    reading,
    rendezvous,
    saving,
)

RULES: tuple[Rule, ...] = (
    *reading.RULES,
    *arguments.RULES,
    *ranks.RULES,
    *group.RULES,
    *rendezvous.RULES,
    *devices.RULES,
    *loaders.RULES,
    *saving.RULES,
    *offline.RULES,
)
"""In the order in which a program comes to them."""
