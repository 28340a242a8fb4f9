"""Rules about which GPUs and which cores each rank gets."""

from lumitui.app.lint.rule import Rule
from lumitui.app.lint.rules.binding import masks, unbound, visible

RULES: tuple[Rule, ...] = (*visible.RULES, *masks.RULES, *unbound.RULES)
"""GPUs first, then cores."""
