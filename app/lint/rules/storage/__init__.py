"""Rules about containers, and about where files are read and written."""

from lumitui.app.lint.rules.storage import binds, files, hidden, image, logs

RULES = (*image.RULES, *binds.RULES, *hidden.RULES, *files.RULES, *logs.RULES)
