"""Rules about variables, modules, the network's settings and caches."""

from lumitui.app.lint.rules.environment import (
    caches,
    hardware,
    modules,
    network,
    spelling,
    values,
    variables,
)

RULES = (
    *values.RULES,
    *variables.RULES,
    *spelling.RULES,
    *modules.RULES,
    *network.RULES,
    *caches.RULES,
    *hardware.RULES,
)
