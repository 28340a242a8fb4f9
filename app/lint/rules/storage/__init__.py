"""Rules about containers, and about where files are read and written."""

from lumitui.app.lint.rules.storage import binds, files, image, logs

RULES = (*image.RULES, *binds.RULES, *files.RULES, *logs.RULES)
