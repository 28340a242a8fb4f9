"""The job that looks at a node: what a person is told before it is sent. No site is asked."""

from lumitui.app.runs import Runs
from tests.support.program.command_line import lt
from tests.support.program.home import Home
from tests.support.replies.surveyed import SURVEY, text_from

LISTS = "node:\n  gpu_cores: [13-23, 1-11, 37-47, 25-35]\n"


def test_a_probe_says_its_price_and_nothing_that_a_person_cannot_change(home: Home) -> None:
    profile = home.config / "sites" / "new.yaml"
    profile.parent.mkdir(parents=True, exist_ok=True)
    profile.write_text(text_from(SURVEY).replace("node:\n", LISTS, 1))
    runs = Runs(home.settings)
    try:
        found = runs.surveys.preview("new")
    finally:
        runs.close()
    assert not [one for one in found.findings if one.at.field == "binding"]
    # Without a terminal the price comes before the refusal.
    asked = lt(home, "site", "check", "new", "--probe")
    assert asked.returncode == 2
    assert "Send a job to new that measures one node of whole" in asked.stderr
    assert asked.stderr.index("billing units") < asked.stderr.index("Cannot ask for confirmation")
    assert "Nothing binds the ranks" not in asked.stderr
