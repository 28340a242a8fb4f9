"""Rules about how ranks are started, and how they find each other."""

from lumitui.app.knowledge.rules.launch import (
    array_rules,
    beside_rules,
    early_rules,
    expansion_rules,
    launcher_argument_rules,
    process_rules,
    rendezvous_rules,
    shell_rules,
    signal_rules,
)

RULES = (
    *process_rules.RULES,
    *beside_rules.RULES,
    *launcher_argument_rules.RULES,
    *rendezvous_rules.RULES,
    *expansion_rules.RULES,
    *shell_rules.RULES,
    *early_rules.RULES,
    *array_rules.RULES,
    *signal_rules.RULES,
)
