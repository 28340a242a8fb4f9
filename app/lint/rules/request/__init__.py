"""Rules about what a job asks of Slurm: where, how long, how many, and what that is billed."""

from lumitui.app.lint.rule import Rule
from lumitui.app.lint.rules.request import limits, queue

RULES: tuple[Rule, ...] = (*queue.RULES, *limits.RULES)
"""In the order of a script's first lines."""
