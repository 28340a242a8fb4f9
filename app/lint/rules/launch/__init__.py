"""Rules about how ranks are started, and how they find each other."""

from lumitui.app.lint.rules.launch import (
    arrays,
    beside,
    early,
    expansion,
    launchers,
    lines,
    ports,
    rendezvous,
    shell,
    signals,
    tasks,
)

RULES = (
    *tasks.RULES,
    *beside.RULES,
    *launchers.RULES,
    *rendezvous.RULES,
    *ports.RULES,
    *expansion.RULES,
    *shell.RULES,
    *lines.RULES,
    *early.RULES,
    *arrays.RULES,
    *signals.RULES,
)
