"""The command line as a person and a script use it: the real program, in a process of its own."""

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from lumitui.app.cli import tables
from lumitui.app.cli.main import lumitui
from lumitui.app.cli.process import run_verb
from lumitui.app.compose.advice import findings
from lumitui.app.compose.launch import compose
from lumitui.app.job import examples
from lumitui.app.job.spec import parse_job
from lumitui.app.runs import Runs
from lumitui.app.send.source import deepspeed_config
from lumitui.remote.run_folder import SCRIPTS
from lumitui.remote.site.sites import BUILT_IN, Sites
from tests.support.command_line import (
    HELLO,
    PROGRAM,
    Here,
    envelope,
    environ,
    lt,
    on_terminal,
    runs_of,
)
from tests.support.home import Home
from tests.support.jobs.small_jobs import wait_until
from tests.support.places import ROOT

# -- the program itself


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
        "regex", "pydantic", "pydantic_core", "lumitui.app.compose", "lumitui.app.scale",
        "lumitui.app.results", "lumitui.remote.scheduler.protocol",
        "lumitui.app.send.submit", "lumitui.app.explain.diagnose",
        "lumitui.remote.source", "lumitui.remote.snapshots", "lumitui.remote.doctor",
    }  # fmt: skip
    for verb in ("status", "history"):
        assert sorted(heavy & loaded(home, verb)[1]) == [], verb


def test_without_a_terminal_the_tui_is_refused(home: Home) -> None:
    for words in ((), ("tui",)):
        done = lt(home, *words)
        assert done.returncode == 2
        assert "needs a terminal" in done.stderr


def test_usage_errors_are_two_sentences_and_exit_2(home: Home) -> None:
    for words in (("submitt",), ("submit",), ("show", "--no"), ("bind", "lumi", "--ranks", "x")):
        done = lt(home, *words)
        assert (done.returncode, done.stdout) == (2, "")
        lines = done.stderr.splitlines()
        assert [line.partition(":")[0] for line in lines] == ["error", "hint"]
    error = envelope(lt(home, "show", "nothing", "--json"))["error"]
    assert error["exit_code"] == 2
    assert "nothing" in error["message"]


def test_a_reader_that_leaves_ends_it_quietly(home: Home, job: Path) -> None:
    # More than a pipe holds (64 KiB), so that the writer meets the closed end.
    (job.parent / "hello.py").write_text("print('line\\n' * 100_000)\n")
    assert lt(home, "submit", str(job), "--yes", "--wait").returncode == 0
    for words in ("logs last --last 500000", "sites lumi", "history --json"):
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
    assert run_verb(lumitui, ["status", "--json"]) == 1
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    assert json.loads(out)["error"]["exit_code"] == 1
    (report,) = home.data.glob("crash-*.txt")
    assert str(report) in err
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    text = report.read_text()
    assert "ZeroDivisionError" in text and "hunter2" not in text
    monkeypatch.setenv("LUMITUI_DEBUG", "1")
    assert run_verb(lumitui, ["status"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_completion_knows_runs_and_sites(home: Home, job: Path) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "_LUMITUI_COMPLETE" in lt(home, "completion", shell).stdout

    def completed(words: str) -> str:
        count = str(len(words.split()) - (not words.endswith(" ")))
        done = lt(home, _LUMITUI_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=count)
        return done.stdout

    assert completed("lumitui bind lu") == "plain,lumi\n"
    run = lt(home, "submit", str(job), "--yes").stdout.strip()
    assert completed("lumitui show hel") == f"plain,{run}\n"
    lt(home, "cancel", run, "--yes")


# -- composing


def test_preview_is_exact_to_the_byte(home: Home, job: Path, runs: Runs) -> None:
    job.write_text(HELLO + 'env: {TEXT: "é \'$(touch x)\' \\"quoted\\""}\n')
    expected = runs.preview(parse_job(job.read_text(), "job"), job.parent)
    done = lt(home, "preview", str(job), "--script")
    assert (done.returncode, done.stdout) == (0, expected.launch.script)
    done = lt(home, "preview", str(job))
    assert done.stdout == f"{expected.command}\n\n{expected.launch.script}"
    assert "1 node, 1 rank on CPU; nothing is billed" in done.stderr
    data = envelope(lt(home, "preview", str(job), "--json"))["data"]
    assert data["script"] == expected.launch.script
    everything = lt(home, "preview", str(job), "--all", "--script").stdout
    assert {item["name"] for item in data["files"]} == set(SCRIPTS[1:])
    for name in SCRIPTS:
        assert f"# ======== {name} ========\n{expected.launch.texts[name]}" in everything


def test_preview_exits_2_when_it_could_not_be_sent(home: Home, job: Path) -> None:
    job.write_text(HELLO.replace("args: [one]", "sbatch: [--gpu-bind=closest]"))
    done = lt(home, "preview", str(job))
    assert done.returncode == 2
    assert done.stderr.startswith("error: --gpu-bind=closest")
    assert done.stdout
    assert lt(home, "submit", str(job), "--yes").returncode == 2
    assert runs_of(home) == []


@pytest.mark.parametrize("site_name", ["laptop", "lumi"])
@pytest.mark.parametrize("example", examples.names())
def test_every_example_composes_everywhere_without_errors(example: str, site_name: str) -> None:
    site = Sites([BUILT_IN]).load(site_name)
    own = example == "script"
    begin = examples.Beginning(
        script="my train.py" if own else None, trainer=None if own else example
    )
    spec = parse_job(examples.text_for(site, begin), example)
    assert (spec.site, spec.script) == (site_name, "my train.py" if own else None)
    launch = compose(spec, site, deepspeed_config=deepspeed_config(spec, Path(".")))
    assert [item for item in findings(launch, site) if item.severity == "error"] == []


def test_init_writes_a_job_file_once(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "new job.yaml"
    old = os.umask(0o077)
    try:
        words = ("init", "--site", "lumi", "--account", "project_465000009", "--name", 'a "b" # c')
        done = lt(home, *words, "--script", "train.py", "--output", str(path))
    finally:
        os.umask(old)
    assert done.returncode == 0, done.stderr
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    spec = parse_job(path.read_text(), "job")
    assert (spec.name, spec.account, spec.script) == ('a "b" # c', "project_465000009", "train.py")
    assert "dev-g: up to 3:00:00" in path.read_text()
    assert "warning: The script train.py is not among" in done.stderr
    before = path.read_bytes()
    done = lt(home, *words, "--output", str(path))
    assert (done.returncode, path.read_bytes()) == (2, before)
    assert lt(home, "init", "--site", "lumi", "--output", "/no/job.yaml").returncode == 2
    other = tmp_path / "other.yaml"
    done = lt(home, "init", "--site", "lumi", "--account", "proj_1", "--output", str(other))
    assert (done.returncode, other.exists()) == (2, False)
    assert "'proj_1' is not an account at lumi." in done.stderr


def test_sites_schema_and_binding_are_printed(
    home: Home, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = here("sites")
    assert max(map(tables.width, done.stdout.splitlines())) <= 80
    assert "standard-g" in done.stdout
    assert f"{home.config}/sites/NAME.yaml. With `extends: OTHER`" in done.stderr
    page = here("sites", "lumi").stdout
    assert "unverified:" in page and "partitions.dev-g.max_nodes" in page
    assert envelope(here("sites", "lumi", "--json"))["data"]["node"]["gpus"] == 8
    for what, key in (("job", "partition"), ("site", "work_root")):
        assert key in json.loads(here("schema", what).stdout)["properties"]
    assert "0x00fe000000000000" in here("bind", "lumi").stdout
    data = envelope(here("bind", "lumi", "--ranks", "2", "--json"))["data"]
    assert [item["cores"] for item in data] == ["49-55", "57-63"]
    assert here("bind", "lumi", "--ranks", "9").returncode == 2


# -- runs, on this machine


def test_a_run_from_submit_to_fetch(here: Here, job: Path, tmp_path: Path) -> None:
    done = here("submit", str(job), "--yes", "--wait", "--timeout", "60", "--json")
    assert done.returncode == 0, done.stderr
    run = envelope(done)["data"]
    assert (run["state"], run["rc"], run["ranks"]) == ("done", 0, 1)

    assert '"argv": ["one"]' in here("logs", run["id"]).stdout
    assert here("logs", "last", "--last", "5").stdout != here("logs", "last").stdout
    assert here("logs", "-f", "last").returncode == 0
    assert here("logs", "last", "--attempt", "9").returncode == 4
    done = here("status")
    assert (done.stdout, done.returncode) == ("", 0)
    shown = here("show", "hello").stdout
    assert run["id"] in shown and "done (COMPLETED)" in shown
    data = envelope(here("show", "last", "--json"))["data"]
    assert data["script"].startswith("#!/bin/bash -l")
    assert data["proof"]["kind"] == "not measured"

    words = ("resubmit", "last", "--set", "env.PROBE_TEXT=later", "--set", "args=[two]")
    assert here(*words).returncode == 2
    done = here(*words, "--yes")
    assert done.returncode == 0, done.stderr
    second = done.stdout.strip()
    lines = [line.split() for line in done.stderr.splitlines()]
    assert ["arguments", "one", "two"] in lines
    assert ["nodes", "1", "="] in lines
    assert here("logs", "-f", second).returncode == 0
    assert {row["id"]: row["parent"] for row in runs_of(here)} == {
        run["id"]: None,
        second: run["id"],
    }
    shown = here("show", run["id"]).stdout
    assert f"  {second}  done" in shown
    printed = here("diff", run["id"], second)
    assert "+export PROBE_TEXT=later" in printed.stdout and "args" in printed.stdout
    assert envelope(here("diff", "last", "last", "--json"))["data"]["script"] == []

    target = tmp_path / "results"
    done = here("fetch", run["id"], "--to", str(target), "*.out")
    assert done.stdout == f"{target}/attempt-1.out\n"
    assert '"argv": ["one"]' in (target / "attempt-1.out").read_text()
    assert here("prune", "laptop").returncode == 0
    assert here("cancel", "last", "--yes").returncode == 2


def test_a_job_that_fails_exits_5_and_says_why(here: Here, job: Path) -> None:
    job.write_text(HELLO + 'env: {FAIL_RANK: "0"}\n')
    done = here("submit", str(job), "--yes", "--wait", "--json")
    assert done.returncode == 5
    answer = envelope(done)
    assert (answer["data"]["state"], answer["data"]["rc"]) == ("failed", 7)
    assert answer["error"]["exit_code"] == 5
    assert here("logs", "-f", "last").returncode == 5
    assert "why\n" in here("show", "last").stdout
    assert [row["state"] for row in runs_of(here)] == ["failed"]
    assert envelope(here("history", "--state", "done", "--json"))["data"] == []
    assert here("history", "--state", "dnoe").returncode == 2
    found = here("history", "--filter", "failed nodes:1 !nowhere", "--sort", "cost", "--json")
    assert [row["state"] for row in envelope(found)["data"]] == ["failed"]
    wrong = here("history", "--filter", "nodes:many")
    assert wrong.returncode == 2 and "'many' is no number of nodes" in wrong.stderr


def test_waiting_has_an_end_and_the_job_goes_on_until_cancelled(home: Home, job: Path) -> None:
    (job.parent / "hello.py").write_text("import time\nprint('up', flush=True)\ntime.sleep(120)\n")
    done = lt(home, "submit", str(job), "--yes", "--timeout", "0.1", "--json")
    assert done.returncode == 124
    answer = envelope(done)
    assert answer["error"]["exit_code"] == 124
    run = answer["data"]["id"]
    table = lt(home, "status", COLUMNS="80").stdout.splitlines()
    assert len(table) == 2 and table[1].startswith(run)

    watching = subprocess.Popen(
        [*PROGRAM, "logs", "-f", run],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environ(home),
    )
    try:
        assert watching.stdout is not None
        assert b"up" in watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        _, err = watching.communicate(timeout=30)
    finally:
        watching.kill()
    assert watching.returncode == 130
    assert b"Traceback" not in err and b"Interrupted." in err

    assert lt(home, "cancel", run).returncode == 2
    done = lt(home, "cancel", run, "--yes", "--json")
    assert done.returncode == 0, done.stderr

    def is_cancelled() -> bool:
        lt(home, "status")
        return bool(runs_of(home)[0]["state"] == "cancelled")

    wait_until(is_cancelled, 30, "the cancelled job to end")


# -- on a terminal


def test_submit_asks_once_and_the_default_is_no(home: Home, job: Path) -> None:
    code, shown = on_terminal(home, ["submit", str(job)], "\n", "[y/N]")
    assert code == 1
    assert "1 node, 1 rank on CPU, at most 00:05:00; nothing is billed? [y/N]" in shown
    assert "Nothing was sent." in shown
    assert runs_of(home) == []
    code, shown = on_terminal(home, ["submit", str(job), "--wait"], "y\n", "[y/N]")
    assert code == 0, shown
    assert shown.count("[y/N]") == 1
    code, shown = on_terminal(home, ["resubmit", "last"], "n\n", "[y/N]")
    assert code == 1 and shown.count("[y/N]") == 1
    assert len(runs_of(home)) == 1


def test_a_log_cannot_drive_the_terminal_but_a_pipe_gets_its_bytes(home: Home, job: Path) -> None:
    text = "\x1b[31mred\x1b[0m \x1b]0;title\x07\x1b[2J\x9b5n\x1b]52;c;aGk=\x1b\\ [/] end"
    script = job.parent / "hello.py"
    script.write_text(f"import sys\nsys.stdout.buffer.write({text.encode()!r})\n")
    assert lt(home, "submit", str(job), "--yes", "--wait").returncode == 0
    assert text in lt(home, "logs", "last").stdout
    code, shown = on_terminal(home, ["logs", "last"])
    assert code == 0
    assert "\x1b[31mred\x1b[0m \\x9b5n [/] end" in shown
    _, shown = on_terminal(home, ["logs", "last"], NO_COLOR="1")
    assert "\x1b" not in shown
