"""Each wording that a library can print is named: what its source says, alone in a log."""

from pathlib import Path

import pytest
import yaml

from lumitui.app.explain.failure.diagnose import diagnose
from lumitui.app.explain.failure.diagnosis import Ending
from lumitui.remote.scheduler.states import State

WORDINGS: dict[str, list[str]] = yaml.safe_load(
    (Path(__file__).parent / "wordings.yaml").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("cause", sorted(WORDINGS))
def test_each_wording_of_a_cause_is_named(cause: str) -> None:
    answers = {line: diagnose(Ending(State.FAILED, log=f"{line}\n")) for line in WORDINGS[cause]}
    assert not {line: found[0].id for line, found in answers.items() if found[0].id != cause}
