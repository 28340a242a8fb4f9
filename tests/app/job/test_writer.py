"""A file that a newer lumitui wrote: an older one says which, and to upgrade, and lists no keys."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lumitui.app.history.history import History
from lumitui.app.history.rows.run_record import record_text, run_of
from lumitui.app.job.spec import parse_job
from lumitui.app.launch.send.draft import open_draft, save_draft
from lumitui.remote.site.errors import LumiError
from lumitui.remote.site.reading.writer import MARK, installed, marked, remarked
from lumitui.remote.site.sites import BUILT_IN, Sites
from tests.support.jobs.made_runs import a_run
from tests.support.program.command_line import HELLO, Here, told
from tests.support.program.home import Home

SCRIPT = """\
#!/bin/bash
#SBATCH --account=project_462000001 --partition=small-g --nodes=1 --gpus-per-node=1 --time=1:00:00
srun python train.py
"""


def newer(text: str) -> str:
    """Return a file as a later version would have written it, with a key of that version."""
    assert MARK.search(text), text
    return MARK.sub("# Written by lumitui 9.9.0", text) + "hovercraft: [eels]\n"


@pytest.mark.parametrize("words", ["new --trainer ddp --site laptop", "new --example ddp",
                                   "import {script} --site lumi"])  # fmt: skip
def test_a_job_file_of_a_newer_version(here: Here, tmp_path: Path, words: str) -> None:
    path, script = tmp_path / "job.yaml", tmp_path / "old.sh"
    script.write_text(SCRIPT)
    done = here(*words.format(script=script).split(), "--output", str(path))
    assert done.returncode == 0, done.stderr
    assert MARK.findall(path.read_text()) == [installed()]
    assert here("preview", str(path)).returncode in (0, 2)
    path.write_text(newer(path.read_text()))
    for verb in ("preview", "submit", "fix"):
        done = here(verb, str(path))
        said = done.stderr if verb == "fix" else told(done, 2)
        assert "lumitui 9.9.0 wrote" in said and "Upgrade lumitui" in said
        assert "hovercraft" not in said


def test_what_a_person_wrote_has_the_list_of_mistakes_and_no_mark(tmp_path: Path) -> None:
    with pytest.raises(LumiError, match="hovercraft: unknown key"):
        parse_job(HELLO + "hovercraft: 1\n", "job")
    with pytest.raises(LumiError, match="hovercraft: unknown key"):
        parse_job(marked(HELLO) + "hovercraft: 1\n", "job")
    assert remarked(HELLO) == HELLO
    path = tmp_path / "job.yaml"
    path.write_text(HELLO)
    save_draft(open_draft(path))
    assert path.read_text() == HELLO
    path.write_text(MARK.sub("# Written by lumitui 0.0.1", marked(HELLO)))
    assert "0.0.1" in path.read_text()
    save_draft(open_draft(path))
    assert path.read_text() == marked(HELLO)


def test_a_profile_of_a_newer_version_and_one_that_extends_it(home: Home) -> None:
    sites = home.config / "sites"
    (sites / "mine.yaml").write_text(newer(marked("extends: laptop\n")))
    (sites / "other.yaml").write_text("extends: mine\n")
    for name in ("mine", "other"):
        with pytest.raises(LumiError, match=r"lumitui 9\.9\.0 wrote .*mine\.yaml") as error:
            Sites((sites, BUILT_IN)).load(name)
        assert "hovercraft" not in str(error.value) and "Upgrade" in error.value.hint


def test_a_run_of_a_newer_version(home: Home) -> None:
    kept = History(home.settings.history)
    run = a_run("new-000001")
    kept.begin(run)
    assert kept.get(run.id).spec == run.spec
    row = json.loads(record_text(run))
    assert "lumitui" not in row["spec"] and run_of(json.dumps(row).encode(), f"/w/p/runs/{run.id}")
    row["spec"]["hovercraft"], row["lumitui"] = 1, "9.9.0"
    with pytest.raises(ValueError, match=r"lumitui 9\.9\.0, a newer version, wrote it.*upgrade"):
        run_of(json.dumps(row).encode(), f"/w/p/runs/{run.id}")
    kept.close()


def test_a_run_in_the_history_names_the_version_that_wrote_it(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    import lumitui.app.history.rows.run_row as rows

    kept = History(home.settings.history)
    monkeypatch.setattr(rows, "installed", lambda: "9.9.0")
    before = json.dumps

    def with_key(value: object) -> str:
        if isinstance(value, dict) and "lumitui" in value:
            value = value | {"hovercraft": 1}
        return before(value)

    monkeypatch.setattr(json, "dumps", with_key)
    kept.begin(replace(a_run("new-000002"), note="later"))
    monkeypatch.undo()
    (listed,) = kept.page()
    assert listed.note == "later"
    with pytest.raises(LumiError, match=r"lumitui 9\.9\.0 wrote .*new-000002") as error:
        _ = listed.spec
    assert "Upgrade" in error.value.hint and "hovercraft" not in error.value.message
    kept.close()
