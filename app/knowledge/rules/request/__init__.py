"""Rules about what a job asks of Slurm: where, how long, how many, and what that is billed."""

from lumitui.app.knowledge.rule import Rule
from lumitui.app.knowledge.rules.request import (
    core_rules,
    end_rules,
    gpu_rules,
    limit_rules,
    memory_rules,
    price_rules,
    queue_rules,
    step_rules,
    task_rules,
)

RULES: tuple[Rule, ...] = (
    *queue_rules.RULES,
    *limit_rules.RULES,
    *end_rules.RULES,
    *task_rules.RULES,
    *gpu_rules.RULES,
    *core_rules.RULES,
    *memory_rules.RULES,
    *price_rules.RULES,
    *step_rules.RULES,
)
"""In the order of a script's first lines."""
