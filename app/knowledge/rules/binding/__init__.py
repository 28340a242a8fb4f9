"""Rules about which GPUs and which cores each rank gets."""

from lumitui.app.knowledge.rule import Rule
from lumitui.app.knowledge.rules.binding import mask_rules, unbound_rules, visible_device_rules

RULES: tuple[Rule, ...] = (*visible_device_rules.RULES, *mask_rules.RULES, *unbound_rules.RULES)
"""GPUs first, then cores."""
