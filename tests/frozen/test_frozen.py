"""What users see stays as it is unless a commit changes the kept hashes, too.

`python -m tests.frozen` renews them and prints what changed.
"""

from pathlib import Path

import pytest

from tests.frozen.collected import KINDS, collect
from tests.frozen.kept import differences, read

EVERY = {"preview": 26, "scripts": 28, "why": 11, "json": 4}
"""Which of a kind are compared in each run of the tests; all of the others."""


@pytest.mark.parametrize("kind", KINDS)
def test_what_users_see_is_what_was_kept(kind: str, tmp_path: Path) -> None:
    now, kept = collect(kind, tmp_path, EVERY.get(kind, 1)), read(kind)
    assert len(now) * EVERY.get(kind, 1) * 2 >= len(kept)
    if kind in EVERY:
        kept = {name: entry for name, entry in kept.items() if name in now}
    assert list(differences(kept, now)) == []
