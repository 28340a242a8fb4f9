"""Rules about variables, modules, the network's settings and caches."""

from lumitui.app.knowledge.rules.environment import (
    module_rules,
    network_rules,
    spelling_rules,
    value_rules,
    variable_rules,
)

RULES = (
    *value_rules.RULES,
    *variable_rules.RULES,
    *spelling_rules.RULES,
    *module_rules.RULES,
    *network_rules.RULES,
)
