"""Characters that no text of a job file or profile may have. Apart, so that no YAML is imported."""

import re

# What no command line can carry, or what would control the terminal that shows it.
UNSEEN = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\ud800-\\udfff]")
# YAML 1.1 folds these with the spaces around them; in YAML 1.2 they are text like any other.
SEPARATOR = re.compile("[\x85\u2028\u2029]")
