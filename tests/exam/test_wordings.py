"""Each wording that a library can print is named: what its source says, alone in a log."""

import pytest

from lumitui.app.knowledge.failure.diagnose import diagnose
from lumitui.app.knowledge.failure.diagnosis import RunEnd
from lumitui.remote.site.states import State
from tests.exam.corpus import wordings

WORDINGS = wordings()


@pytest.mark.parametrize("cause", sorted(WORDINGS))
def test_each_wording_of_a_cause_is_named(cause: str) -> None:
    answers = {line: diagnose(RunEnd(State.FAILED, log=f"{line}\n")) for line in WORDINGS[cause]}
    assert not {line: found[0].id for line, found in answers.items() if found[0].id != cause}
