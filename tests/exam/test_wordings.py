"""Each wording that a library can print is named: what its source says, alone in a log."""

from pathlib import Path

import pytest
import yaml

from lumitui.app.explain.failure.diagnose import diagnose
from lumitui.app.explain.failure.diagnosis import Ending
from lumitui.remote.scheduler.states import State

_HERE = Path(__file__).parent
_FILES = (_HERE / "wordings.yaml", *sorted((_HERE / "families").glob("*.yaml")))
WORDINGS: dict[str, list[str]] = {}
for _file in _FILES:
    for _cause, _lines in yaml.safe_load(_file.read_text(encoding="utf-8")).items():
        WORDINGS.setdefault(_cause, []).extend(_lines)


@pytest.mark.parametrize("cause", sorted(WORDINGS))
def test_each_wording_of_a_cause_is_named(cause: str) -> None:
    answers = {line: diagnose(Ending(State.FAILED, log=f"{line}\n")) for line in WORDINGS[cause]}
    assert not {line: found[0].id for line, found in answers.items() if found[0].id != cause}
