"""What was found in scripts, as a person or a CI reads it."""

from lumitui.app.knowledge.report.edits import difference
from lumitui.app.knowledge.report.finding_text import findings_text, summary
from lumitui.app.knowledge.report.formats import github_lines, sarif
from lumitui.app.knowledge.rule_table import RULES

__all__ = [
    "RULES",
    "difference",
    "findings_text",
    "github_lines",
    "sarif",
    "summary",
]
