"""The verbs as a person and a script use them; those of a run, on this machine."""

import json
import os
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest

from lumitui.app.cli.confirmation import wrapped
from lumitui.app.cli.views import tables
from lumitui.app.follow.notifications.last_seen import read_last_seen, write_last_seen
from lumitui.app.history.history import History
from lumitui.app.job.spec import parse_job
from lumitui.app.runs import Preview, Runs
from lumitui.app.survey.inquiry.inquiries import Inquired, Inquiries
from lumitui.app.survey.inquiry.topics import finding
from lumitui.remote.site.run_folder import SCRIPTS
from tests.support.jobs.made_runs import a_run
from tests.support.jobs.small_jobs import wait_until
from tests.support.program.command_line import (
    HELLO,
    PROGRAM,
    Here,
    envelope,
    environ,
    runs_of,
    told,
)
from tests.support.program.home import Home

# -- composing


def test_preview_is_exact_to_the_byte(here: Here, job: Path, runs: Runs) -> None:
    job.write_text(HELLO + 'env: {TEXT: "é \'$(touch x)\' \\"quoted\\""}\n')
    expected = runs.preview(parse_job(job.read_text(), "job"), job.parent)
    done = here("preview", str(job), "--script")
    assert (done.returncode, done.stdout) == (0, expected.launch.script)
    done = here("preview", str(job))
    assert done.stdout == f"{expected.command}\n\n{expected.launch.script}"
    assert "1 node, 1 rank on CPU; nothing is billed; code: 2 files, " in done.stderr
    told(here("submit", str(job)), 2, "nothing is billed; code: 2 files, ", "Add --yes.")
    data = envelope(here("preview", str(job), "--json"))["data"]
    assert data["script"] == expected.launch.script
    everything = here("preview", str(job), "--all", "--script").stdout
    assert {item["name"] for item in data["files"]} == set(SCRIPTS[1:])
    for name in SCRIPTS:
        assert f"# ======== {name} ========\n{expected.launch.texts[name]}" in everything


def test_preview_exits_2_when_it_could_not_be_sent(here: Here, job: Path) -> None:
    job.write_text(HELLO.replace("args: [one]", "sbatch: [--array=0-3]"))
    done = here("preview", str(job))
    assert done.returncode == 2
    assert done.stderr.startswith("error: --array=0-3")
    assert done.stdout
    assert here("submit", str(job), "--yes").returncode == 2
    assert runs_of(here) == []


@pytest.mark.parametrize("key", ["python: /nowhere/python", "activate: $HOME/envs/vit"])
def test_submit_asks_the_site_about_an_environment_of_ones_own(
    here: Here, job: Path, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = finding("cluster-environment", "It does not start.", "Check it.", severity="error")

    def of_preview(self: Inquiries, preview: Preview) -> Inquired:
        return Inquired((wrong,), time.time())

    monkeypatch.setattr(Inquiries, "of_preview", of_preview)
    job.write_text(HELLO + f"{key}\n")
    assert here("preview", str(job)).returncode == 0
    done = here("submit", str(job), "--yes")
    told(done, 2, "It does not start.", "The job has 1 error (cluster-environment)")
    job.write_text(HELLO)
    assert here("submit", str(job), "--yes").returncode == 0


def test_init_writes_a_job_file_once(here: Here, tmp_path: Path) -> None:
    path = tmp_path / "new job.yaml"
    old = os.umask(0o077)
    try:
        words = ("new", "--site", "lumi", "--account", "project_465000009", "--name", 'a "b" # c')
        done = here(*words, "--script", "train.py", "--output", str(path))
    finally:
        os.umask(old)
    assert done.returncode == 0, done.stderr
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    spec = parse_job(path.read_text(), "job")
    assert (spec.name, spec.account, spec.script) == ('a "b" # c', "project_465000009", "train.py")
    assert "# or small-g, dev-g" in path.read_text()
    assert "warning: The code lacks the script train.py" in done.stderr
    before = path.read_bytes()
    done = here(*words, "--output", str(path))
    assert (done.returncode, path.read_bytes()) == (2, before)
    assert here("new", "--site", "lumi", "--output", "/no/job.yaml").returncode == 2
    other = tmp_path / "other.yaml"
    done = here("new", "--site", "lumi", "--account", "proj_1", "--output", str(other))
    assert (done.returncode, other.exists()) == (0, True), "only `submit` asks about errors"
    assert "'proj_1' is not an account at lumi" in done.stderr


HANGS = """import torch, torch.distributed as dist
dist.init_process_group("nccl")
if dist.get_rank() == 0:
    dist.barrier()
"""


def test_what_a_rule_finds_keeps_nobody_from_a_job_file_and_with_force_from_a_folder(
    here: Here, tmp_path: Path
) -> None:
    path, out = tmp_path / "job.yaml", tmp_path / "out"
    (tmp_path / "train.py").write_text(HANGS)
    words = ("--account", "project_465000009", "--script", "train.py", "--output", str(path))
    done = here("new", "--site", "lumi", *words)
    assert (done.returncode, path.exists()) == (0, True)
    assert "error: train.py, line 4: Only rank 0 calls barrier()" in done.stderr
    told(here("export", str(path), str(out)), 2, "add --force to write it anyway")
    assert not out.exists()
    done = here("export", str(path), str(out), "--force")
    assert (done.returncode, (out / "job.sh").exists()) == (0, True), done.stderr
    assert "error: train.py, line 4: Only rank 0 calls barrier()" in done.stderr
    done = here("submit", str(path), "--yes")
    assert (done.returncode, runs_of(here)) == (2, [])


def test_sites_schema_and_binding_are_printed(
    home: Home, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = here("site", "show")
    assert max(map(tables.width, done.stdout.splitlines())) <= 80
    assert "standard-g" in done.stdout
    assert f"{home.config}/sites/NAME.yaml; with `extends: OTHER`" in done.stderr
    page = here("site", "show", "lumi").stdout
    assert "\nUnverified\n" in page and "partitions.dev-g.max_nodes" in page
    assert envelope(here("site", "show", "lumi", "--json"))["data"]["node"]["gpus"] == 8
    for what, key in (("job", "partition"), ("site", "work_root")):
        assert key in json.loads(here("schema", what).stdout)["properties"]
    assert "0x00fe000000000000" in here("bind", "lumi").stdout
    data = envelope(here("bind", "lumi", "--ranks", "2", "--json"))["data"]
    assert [item["cores"] for item in data] == ["49-55", "57-63"]
    assert here("bind", "lumi", "--ranks", "9").returncode == 2
    assert "GPU" not in here("bind", "laptop").stdout
    assert here("bind", "lumi", "--explain", "map_cpu:49,57", "--ranks", "2").returncode == 0
    reserved = here("bind", "lumi", "--explain", "--cpu-bind=mask_cpu:0xff", "--json")
    assert reserved.returncode == 1
    assert "mask-reserved" in [one["id"] for one in envelope(reserved)["data"]["mistakes"]]


def test_a_question_breaks_between_words() -> None:
    question = "Measure one node\n  for at most 00:05:00?"
    assert wrapped(question, 16) == "Measure one node\n  for at most\n00:05:00?"


def test_bind_takes_the_file_of_a_profile(here: Here, tmp_path: Path) -> None:
    profile = tmp_path / "breeze.yaml"
    profile.write_text("extends: lumi\n")
    assert "0x00fe000000000000" in here("bind", str(profile)).stdout
    # Cores near no GPU have a domain, but the profile does not name it.
    apart = here("bind", "lumi", "--explain", "map_cpu:200", "--ranks", "1").stdout
    assert " 200        -      none" in apart and "?" not in apart


# -- runs, on this machine


def test_a_run_from_submit_to_fetch(here: Here, job: Path, tmp_path: Path) -> None:
    done = here("submit", str(job), "--yes", "--wait", "--timeout", "60", "--json")
    assert done.returncode == 0, done.stderr
    run = envelope(done)["data"]
    assert (run["state"], run["rc"], run["ranks"]) == ("done", 0, 1)

    assert '"argv": ["one"]' in here("logs", run["id"]).stdout
    assert here("logs", "last", "--last", "5").stdout != here("logs", "last").stdout
    assert here("logs", "-f", "last").returncode == 0
    assert here("logs", "last", "--attempt", "9").returncode == 2
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
    assert here("site", "prune", "laptop", "--yes").returncode == 0
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
    again = here("resubmit", "last", "--yes", "--wait", "--timeout", "60", "--json")
    assert again.returncode == 5 and envelope(again)["data"]["rc"] == 7
    right = ("resubmit", "last", "--set", "env.FAIL_RANK=none", "--yes")
    assert here(*right, "--wait").returncode == 0
    assert [row["state"] for row in runs_of(here)] == ["done", "failed", "failed"]
    for more in (("--ladder", "1,2"), ("--rest",)):
        told(here("resubmit", "last", *more, "--wait"), 2, "--timeout work only with one run")
    told(here("submit", str(job), "--rest", "--timeout", "9"), 2, "work only with one run")


def test_an_end_that_was_printed_is_no_news(here: Here, home: Home, job: Path) -> None:
    seen = home.data / "last-seen"
    assert here("submit", str(job), "--yes", "--wait").returncode == 0
    assert not seen.exists(), "the TUI was never open"
    write_last_seen(seen, time.time() - 60, ["before-1"])
    shown = [
        here("submit", str(job), "--yes", "--wait").stdout.strip(),
        here("try", str(job), "--yes").stdout.strip(),
    ]
    for verb in ("wait", "logs"):
        shown.append(here("submit", str(job), "--yes").stdout.strip())
        here(*((verb, "-f") if verb == "logs" else (verb,)), shown[-1])
    kept = read_last_seen(seen)
    assert kept is not None and kept.unfinished == ("before-1",)
    assert kept.told >= set(shown)


def test_only_the_failed_runs_of_a_history_are_found(here: Here, job: Path) -> None:
    job.write_text(HELLO + 'env: {FAIL_RANK: "0"}\n')
    assert here("submit", str(job), "--yes", "--wait").returncode == 5
    assert [row["state"] for row in runs_of(here)] == ["failed"]
    assert envelope(here("history", "--filter", "done", "--json"))["data"] == []
    found = here("history", "--filter", "failed nodes:1 !nowhere", "--sort", "cost", "--json")
    assert [row["state"] for row in envelope(found)["data"]] == ["failed"]
    wrong = here("history", "--filter", "nodes:many")
    assert wrong.returncode == 2 and "'many' is not a number of nodes" in wrong.stderr


def test_waiting_has_an_end_and_the_job_goes_on_until_cancelled(
    home: Home, here: Here, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    (job.parent / "hello.py").write_text("import time\nprint('up', flush=True)\ntime.sleep(120)\n")
    done = here("submit", str(job), "--yes", "--timeout", "0.1", "--json")
    assert done.returncode == 124
    answer = envelope(done)
    assert answer["error"]["exit_code"] == 124
    run = answer["data"]["id"]
    table = here("status").stdout.splitlines()
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
    assert watching.returncode == 130, err
    assert b"Traceback" not in err and b"Interrupted." in err

    assert here("cancel", run).returncode == 2
    done = here("cancel", run, "--yes", "--json")
    assert done.returncode == 0, done.stderr

    def is_cancelled() -> bool:
        here("status")
        return bool(runs_of(here)[0]["state"] == "cancelled")

    wait_until(is_cancelled, 30, "the cancelled job to end")


def test_submit_does_not_repeat_what_the_preview_has_just_shown(here: Here, job: Path) -> None:
    job.write_text(HELLO + 'hang: "00:10:00"\n')
    warning = "warning: `hang:` has no effect"
    assert warning in here("submit", str(job)).stderr, "nobody has seen it yet"
    assert warning in here("preview", str(job)).stderr
    again = here("submit", str(job)).stderr
    assert warning not in again and f"already shown by the preview: lumitui preview {job}" in again
    job.write_text(job.read_text().replace('time: "00:05:00"', "time: 2-00:00:00"))
    for _ in range(2):
        assert "error: 2-00:00:00 is longer than" in here("submit", str(job)).stderr
        here("preview", str(job))


def test_the_place_of_the_file_is_shown_by_a_check_alone(home: Home, here: Here) -> None:
    listed, checked = here("history"), here("history", "--check")
    assert str(home.data) not in listed.stdout + listed.stderr
    assert str(home.data) in checked.stdout


@pytest.mark.parametrize(("count", "more"), [(50, False), (51, True)])
def test_runs_beyond_the_limit_are_told(home: Home, here: Here, count: int, more: bool) -> None:
    history = History(home.settings.history)
    for number in range(count):
        history.begin(a_run(f"r-{number:06d}"))
    history.close()
    listed, table = here("history", "--json"), here("history", "--filter", "r-")
    assert len(envelope(listed)["data"]) == 50
    for done in (listed, table):
        told = "More than 50 runs match; --limit N lists more." in done.stderr
        assert (done.returncode, told) == (0, more)
    assert len(envelope(here("history", "--json", "--limit", "60"))["data"]) == count


def test_a_check_that_warns_exits_with_1(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LUMITUI_PYTHON", "/bin/false")
    shown = here("site", "check", "laptop")
    assert "warning  python" in shown.stdout and (shown.returncode, shown.stderr) == (1, "")
