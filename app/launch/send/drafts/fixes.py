"""Applies all mechanical fixes to a draft, one per key at a time, until none is left."""

from collections.abc import Callable
from dataclasses import dataclass

from lumitui.app.launch.draft.problems import apply_fixes
from lumitui.app.launch.send.drafts.draft import Draft
from lumitui.app.launch.send.drafts.drafts import CheckedDraft
from lumitui.remote.site.finding import Finding

_MOST_ROUNDS = 10
"""A fix may reveal the next problem; two fixes that undo each other must not loop forever."""


@dataclass(frozen=True)
class FixedDraft:
    """A draft after its fixes."""

    draft: Draft
    done: tuple[Finding, ...]
    """The problems that were fixed, in order."""
    left: tuple[Finding, ...]
    """The problems left for the user; errors first."""


def fixed_draft(draft: Draft, check: Callable[[Draft], CheckedDraft]) -> FixedDraft:
    """Return `draft` with the fixes of the problems that `check` finds."""
    done: list[Finding] = []
    seen = {draft.text}
    problems = check(draft).problems
    for _ in range(_MOST_ROUNDS):
        text, made = apply_fixes(draft.text, problems)
        if text in seen:
            break
        seen.add(text)
        draft, done = draft.edited(text), [*done, *made]
        problems = check(draft).problems
    return FixedDraft(draft, tuple(done), problems)
