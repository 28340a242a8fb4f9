"""Rules about variables, modules, the network's settings and caches."""

from lumitui.app.lint.rules.environment import caches, modules, network, variables

RULES = (*variables.RULES, *modules.RULES, *network.RULES, *caches.RULES)
