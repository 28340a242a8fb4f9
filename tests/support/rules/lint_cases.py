"""Which rules have a case among the adviser's scripts."""

import re
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "app" / "knowledge" / "cases"


@cache
def tried_rules() -> frozenset[str]:
    """Return the rules that some case is about."""
    texts = (path.read_text(encoding="utf-8") for path in FOLDER.rglob("*.yaml"))
    return frozenset(name for text in texts for name in re.findall(r"^- rule: (\S+)$", text, re.M))
