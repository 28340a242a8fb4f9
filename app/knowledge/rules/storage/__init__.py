"""Rules about containers, and about where files are read and written."""

from lumitui.app.knowledge.rules.storage import (
    bind_rules,
    file_rules,
    image_rules,
    log_rules,
)

RULES = (
    *image_rules.RULES,
    *bind_rules.RULES,
    *file_rules.RULES,
    *log_rules.RULES,
)
