"""What has changed in a project since a run was sent, and which code is sent next."""

from dataclasses import replace
from pathlib import Path

import pytest

from lumitui.app.launch.send.code import project_files
from lumitui.app.runs import Runs
from lumitui.app.scale.resubmission import CodeNews, code_news
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import SPEC, a_run


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (("train.py",), "train.py differs from the code that ran."),
        (("a.py", "b.py"), "a.py and b.py differ from the code that ran."),
        (tuple("abcd"), "a, b, c and 1 more file differ from the code that ran."),
        ((), "The project has changed since this run; lumitui does not know which files."),
    ],
)
def test_it_names_the_files(files: tuple[str, ...], words: str) -> None:
    assert CodeNews(True, files).sentence == words
    assert CodeNews().sentence == ""


def test_a_project_is_compared_with_what_was_sent(runs: Runs, tmp_path: Path) -> None:
    project, hashes = tmp_path / "project", tmp_path / "hashes"
    project.mkdir()
    train = project / "train.py"
    train.write_text("print(1)")
    spec = SPEC.model_copy(update={"trainer": None, "script": "train.py"})
    sent = project_files.collect(spec, project, hashes).manifest
    known = runs.history.snapshots
    run = a_run(spec=spec, project=str(project), snapshot=sent.id, state=State.FAILED)
    known.remember(run.site, run.root, sent.text, sent.id)
    assert code_news(run, known, hashes) == CodeNews()
    train.write_text("print(2)")
    (project / "new.py").write_text("")
    assert code_news(run, known, hashes) == CodeNews(True, ("new.py", "train.py"), "current")
    done = replace(run, state=State.DONE)
    assert code_news(done, known, hashes).first == "same", "nothing was wrong with its code"
    known.remember(run.site, run.root, "", "another")
    assert code_news(run, known, hashes) == CodeNews(True, (), "current"), "another was sent since"
    assert code_news(replace(run, snapshot=None), known, hashes).first == "current"
    train.unlink()
    assert code_news(run, known, hashes) == CodeNews(), "the plan says what is wrong"
