"""The program itself: what it imports, how it ends, what it asks and shows on a terminal."""

import json
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from lumitui.app.cli.main import lumitui
from lumitui.app.cli.process import run_verb
from lumitui.app.cli.views import tables
from lumitui.app.runs import Runs
from tests.support.jobs.made_runs import a_run
from tests.support.places import ROOT
from tests.support.program.command_line import (
    PROGRAM,
    Here,
    envelope,
    environ,
    lt,
    on_terminal,
    runs_of,
)
from tests.support.program.home import Home

LOADED = """
import sys
from lumitui.app.cli.main import main
try:
    main()
except SystemExit as end:
    assert not end.code
print(*sorted(sys.modules))
"""


def loaded(home: Home, *words: str) -> tuple[str, set[str]]:
    """Return what a verb prints, and the modules that are imported when it has ended."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *words],
        capture_output=True,
        text=True,
        env={**home.environ, "PYTHONPATH": str(ROOT / "src")},
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    said, _, modules = done.stdout.rstrip().rpartition("\n")
    return said, set(modules.split())


def test_version_loads_nothing_heavy(home: Home) -> None:
    said, modules = loaded(home, "--version")
    assert said.startswith("lumitui ")
    heavy = {"textual", "rich", "paramiko", "pydantic", "jinja2", "yaml", "sqlite3"}
    assert not heavy & modules


def test_lists_load_nothing_that_sends_or_explains(home: Home) -> None:
    heavy = {
        "textual", "rich", "paramiko", "cryptography", "jinja2", "hjson", "tarfile", "yaml",
        "regex", "pydantic", "pydantic_core", "lumitui.app.launch.compose", "lumitui.app.scale",
        "lumitui.app.follow.results", "lumitui.remote.scheduler.scheduler_protocol",
        "lumitui.app.launch.send.submit", "lumitui.app.knowledge.failure.diagnose",
        "lumitui.remote.source", "lumitui.remote.transfer", "lumitui.remote.survey.doctor",
    }  # fmt: skip
    for verb in ("status", "history"):
        assert sorted(heavy & loaded(home, verb)[1]) == [], verb


def test_without_a_terminal_the_tui_is_refused(home: Home, here: Here) -> None:
    for done in (lt(home, COLUMNS="0"), here("tui")):
        assert done.returncode == 2
        assert "needs a terminal" in done.stderr


def test_usage_errors_are_two_sentences_and_exit_2(here: Here) -> None:
    for words in (("submitt",), ("submit",), ("show", "--no"), ("bind", "lumi", "--ranks", "x")):
        done = here(*words)
        assert (done.returncode, done.stdout) == (2, "")
        lines = done.stderr.splitlines()
        assert [line.partition(":")[0] for line in lines] == ["error", "hint"]
    error = envelope(here("show", "nothing", "--json"))["error"]
    assert error["exit_code"] == 2
    assert "nothing" in error["message"]


def test_a_reader_that_leaves_ends_it_quietly(home: Home, here: Here, job: Path) -> None:
    # More than a pipe holds (64 KiB), so that the writer meets the closed end.
    (job.parent / "hello.py").write_text("print('line\\n' * 100_000)\n")
    assert here("submit", str(job), "--yes", "--wait").returncode == 0
    for words in ("logs last --last 500000", "site show lumi", "history --json"):
        command = f"set -o pipefail; {' '.join(PROGRAM)} {words} | head -n 1"
        done = subprocess.run(
            ["bash", "-c", command], capture_output=True, text=True, env=environ(home), timeout=60
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.count("\n") == 1


def test_a_defect_is_one_sentence_and_a_private_report(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("the token is hunter2hunter2")

    monkeypatch.setenv("MY_TOKEN", "hunter2hunter2")
    monkeypatch.setattr(tables, "history_table", broken)
    monkeypatch.setattr(Runs, "refresh", broken)
    assert run_verb(lumitui, ["status", "--json"]) == 70
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    assert json.loads(out)["error"]["exit_code"] == 70
    (report,) = home.data.glob("crash-*.txt")
    assert str(report) in err
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    text = report.read_text()
    assert "ZeroDivisionError" in text and "hunter2" not in text
    monkeypatch.setenv("LUMITUI_DEBUG", "1")
    assert run_verb(lumitui, ["status"]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_completion_knows_runs_and_sites(home: Home, here: Here, runs: Runs) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "_LUMITUI_COMPLETE" in here("completion", shell).stdout

    def completed(words: str) -> str:
        count = str(len(words.split()) - (not words.endswith(" ")))
        done = lt(home, _LUMITUI_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=count)
        return done.stdout

    assert completed("lumitui bind lu") == "plain,lumi\n"
    runs.history.begin(a_run("hello-000001"))
    assert completed("lumitui show hel") == "plain,hello-000001\n"


# -- on a terminal


def test_submit_asks_once_and_the_default_is_no(home: Home, here: Here, job: Path) -> None:
    code, shown = on_terminal(home, ["submit", str(job)], "\n", "[y/N]")
    assert code == 1
    question = " ".join(shown.split())  # it is wrapped between words
    assert "1 node, 1 rank on CPU, at most 00:05:00; nothing is billed; code: 2 files, " in question
    assert "Nothing was sent." in shown
    assert runs_of(here) == []
    code, shown = on_terminal(home, ["submit", str(job), "--wait"], "y\n", "[y/N]")
    assert code == 0, shown
    assert shown.count("[y/N]") == 1
    code, shown = on_terminal(home, ["resubmit", "last"], "n\n", "[y/N]")
    assert code == 1 and shown.count("[y/N]") == 1
    assert len(runs_of(here)) == 1


def test_submit_names_the_errors_in_its_question(home: Home, here: Here, job: Path) -> None:
    job.write_text(re.sub("time: .*", "time: 2-00:00:00", job.read_text()))
    code, shown = on_terminal(home, ["submit", str(job)], "\n", "[y/N]")
    assert code == 1 and runs_of(here) == []
    assert "The job has 1 error (time-limit). Submit" in " ".join(shown.split())
    code, shown = on_terminal(home, ["submit", str(job), "--wait"], "y\n", "[y/N]")
    assert code == 0 and shown.count("[y/N]") == 1


def test_a_log_cannot_drive_the_terminal_but_a_pipe_gets_its_bytes(
    home: Home, here: Here, job: Path
) -> None:
    text = "\x1b[31mred\x1b[0m \x1b]0;title\x07\x1b[2J\x9b5n\x1b]52;c;aGk=\x1b\\ [/] end"
    script = job.parent / "hello.py"
    script.write_text(f"import sys\nsys.stdout.buffer.write({text.encode()!r})\n")
    assert here("submit", str(job), "--yes", "--wait").returncode == 0
    assert text in lt(home, "logs", "last").stdout
    code, shown = on_terminal(home, ["logs", "last"])
    assert code == 0
    assert "\x1b[31mred\x1b[0m \\x9b5n [/] end" in shown
    _, shown = on_terminal(home, ["logs", "last"], NO_COLOR="1")
    assert "\x1b" not in shown
