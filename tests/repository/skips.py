"""The skips that a full test run allows: those listed in tests/allowed_skips.txt."""

import re
from dataclasses import dataclass

from tests.support.places import ALLOWED_SKIPS

VARIABLE = "LUMITUI_FAIL_ON_SKIP"
"""Set to 1, it makes a skip that is not listed a failure."""


@dataclass(frozen=True)
class AllowedSkip:
    """One line of the list: which tests may be skipped, and why that is no loss."""

    pattern: str  # of test ids; * stands for anything
    reason: str

    def matches(self, test_id: str) -> bool:
        """Whether the line is about this test."""
        words = map(re.escape, self.pattern.split("*"))
        return re.fullmatch(".*".join(words), test_id, re.DOTALL) is not None


def parse_allowed(text: str) -> list[AllowedSkip]:
    """Read the list: `PATTERN  REASON`, two spaces between; raises ValueError without a reason."""
    found = []
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            pattern, _, reason = (word.strip() for word in line.partition("  "))
            if not reason:
                raise ValueError(f"{ALLOWED_SKIPS.name} gives no reason for {pattern}")
            found.append(AllowedSkip(pattern, reason))
    return found


def fault(test_id: str, reason: str) -> str:
    """Return why this skip makes a full run fail, "" when it is listed."""
    if any(line.matches(test_id) for line in parse_allowed(ALLOWED_SKIPS.read_text())):
        return ""
    return (
        f"{test_id} was skipped ({reason}). Install what it needs "
        f"(tests/cluster/parts/packages.sh) or list it in tests/{ALLOWED_SKIPS.name}."
    )
