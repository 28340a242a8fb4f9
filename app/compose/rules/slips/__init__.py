"""The adviser's rules about slips in a job file: paths of a laptop, outputs of a grid, secrets."""

from lumitui.app.compose.rules.finding import Rule
from lumitui.app.compose.rules.slips import paths, python, secrets

RULES: tuple[Rule, ...] = (*paths.RULES, *python.RULES, *secrets.RULES)
"""Every rule of this subject about a single run."""
