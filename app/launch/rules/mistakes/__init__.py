"""The adviser's rules about slips in a job file: paths of a laptop, outputs of a grid, secrets."""

from lumitui.app.launch.rules.launch_rule import LaunchRule
from lumitui.app.launch.rules.mistakes import path_mistakes, python_mistakes, secret_mistakes

RULES: tuple[LaunchRule, ...] = (
    *path_mistakes.RULES,
    *python_mistakes.RULES,
    *secret_mistakes.RULES,
)
"""Every rule of this subject about a single run."""
