"""`notify:`: the job itself tells an address that it has ended, with the laptop off."""

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from lumitui.app.history.run import Run
from lumitui.app.job.spec import changed, parse_job
from lumitui.app.launch.compose import compose
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import InputError
from tests.support.jobs.chained_runs import chained, hurry
from tests.support.jobs.job_functions import made_folder, run_bash
from tests.support.jobs.sites.lumi_job import JOB
from tests.support.jobs.sites.site_jobs import site
from tests.support.jobs.small_jobs import finish, wait_until
from tests.support.places import ROOT
from tests.support.servers.cluster import Cluster
from tests.support.servers.webhook import Webhook, webhook

SECRET = "a-path-that-nobody-may-read"
FUNCTIONS = "".join(
    (ROOT / f"templates/job/{name}.sh").read_text() for name in ("lumitui", "notify")
)


@pytest.fixture
def listener(monkeypatch: pytest.MonkeyPatch) -> Iterator[Webhook]:
    """A webhook, whose secret address is in HOOK."""
    with webhook() as server:
        monkeypatch.setenv("HOOK", address(server))
        yield server


def address(server: Webhook) -> str:
    return f"{server.address}/{SECRET}?a=1&b=[2]"


def sent(runs: Runs, folder: Path, program: str = "", **keys: object) -> Run:
    (folder / "end.py").write_text(f"import json, os, sys\n{program}\n")
    data = {"name": "told", "site": "laptop", "partition": "local", "time": "00:05:00",
            "script": "end.py", "proof": "off", "gpus_per_node": 1, "notify": "HOOK"}  # fmt: skip
    return runs.send(runs.preview(parse_job(yaml.safe_dump(data | keys), "job"), folder))


def everything(run: Run) -> str:
    """Return all that the run's folder has, and its record."""
    files = [path for path in Path(run.folder).rglob("*") if path.is_file()]
    return "".join(path.read_text(errors="replace") for path in files) + repr(run)


@pytest.mark.parametrize("keys", [{}, {"notify": {"webhook": "HOOK", "format": "json"}}])
def test_a_job_tells_how_it_ended(
    runs: Runs,
    listener: Webhook,
    tmp_path: Path,
    keys: dict[str, object],
) -> None:
    see = "open(os.environ['RUN_DIR'] + '/seen', 'w').write(repr(dict(os.environ)))"
    for program, end in ((see, "done"), ("sys.exit(3)", "failed with exit code 3")):
        listener.told.clear()
        run = finish(runs, sent(runs, tmp_path, program, **keys))
        wait_until(lambda: bool(listener.told), 30)
        ((path, kind, body),) = listener.told
        assert path.startswith(f"/{SECRET}?a=1&b=")
        text = json.loads(body)["text"] if keys else body
        assert kind == ("application/json" if keys else "text/plain")
        assert re.fullmatch(rf"{run.id} at laptop: {end} after 0 h 0 min \d+ s\.", text)
        # Not in the program's environment, a log, a script or the history.
        kept = everything(run)
        (Path(run.folder) / ".secrets").unlink(missing_ok=True)
        assert SECRET not in everything(run), "only the file of secrets may have it"
        assert ("HOOK" in kept) and (end != "done" or SECRET not in kept)


def test_a_secret_of_the_job_too_is_in_its_environment(
    runs: Runs, listener: Webhook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER_TOKEN", "x'y")
    program = "assert os.environ['OTHER_TOKEN'] == \"x'y\"\nsys.exit('HOOK' in os.environ)"
    run = finish(runs, sent(runs, tmp_path, program, secrets=["OTHER_TOKEN"]))
    assert run.state is State.DONE
    run = finish(runs, sent(runs, tmp_path, program, secrets=["OTHER_TOKEN", "HOOK"]))
    assert run.state is State.FAILED, "it has it where `secrets:` says so"


@pytest.mark.parametrize(
    "address", ["http://example.org/x", "https://me:pw@example.org/", "ftp://x/", "https://a/ b",
                'https://a/"\nurl = "https://b/', "nonsense", "https://"],
)  # fmt: skip
def test_an_address_that_others_could_read_is_refused(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("HOOK", address)
    with pytest.raises(InputError, match="HOOK is not a valid address") as caught:
        sent(runs, tmp_path)
    assert address not in str(caught.value).replace("https://HOST/PATH", "")
    monkeypatch.delenv("HOOK")
    with pytest.raises(InputError, match="HOOK is not set"):
        sent(runs, tmp_path)


def leaving(
    folder: Path,
    address: str,
    how: str = "lumitui_exit 0",
    *,
    curl: bool = True,
    home: Path | None = None,
) -> tuple[int, str]:
    """End a script that tells `address`; return its exit code and what it printed.

    With a `home` it is a login shell, as a job's is.
    """
    (folder / ".secrets").write_text(f"HOOK='{address}'\n")
    text = f"{FUNCTIONS}\nset -eo pipefail; RUN_DIR=$PWD NODE_TMP=\n"
    text += f"lumitui_notify HOOK lumi text\n{how}\n"
    path = os.environ["PATH"]
    if home:
        text = f"exec env HOME={home} bash -lc {shlex.quote(text)}"
    if not curl:
        tools = folder / "tools"
        tools.mkdir()
        for name in ("bash", "timeout", "sleep"):
            (tools / name).symlink_to(shutil.which(name) or name)
        (tools / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        (tools / "python3").chmod(0o755)
        path = str(tools)
    done = run_bash(folder, text, {"PATH": path})
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("curl", [True, False])
@pytest.mark.parametrize("status", [200, 302, 500])
def test_a_failed_notice_fails_nothing_and_its_address_stays_secret(
    listener: Webhook, tmp_path: Path, status: int, curl: bool
) -> None:
    if curl and not shutil.which("curl"):
        pytest.skip("there is no curl")
    listener.status = status
    code, printed = leaving(made_folder(tmp_path / "run"), address(listener), curl=curl)
    assert code == 0 and len(listener.told) == 1, "it follows no redirect"
    assert ("was not sent" in printed) is (status != 200)
    assert SECRET not in printed and "127.0.0.1" not in printed


def test_a_link_that_dies_and_a_missing_address_cost_ten_seconds_at_most(tmp_path: Path) -> None:
    code, printed = leaving(made_folder(tmp_path / "run"), f"http://127.0.0.1:1/{SECRET}")
    assert code == 0 and "was not sent" in printed and SECRET not in printed
    code, printed = leaving(made_folder(tmp_path / "other"), "", "lumitui_exit 7")
    assert code == 7 and "its address is missing" in printed


@pytest.mark.parametrize("logout", [False, True])
@pytest.mark.parametrize(
    "how, code, end",
    [
        ("kill -TERM $$; sleep 9", 143, "ended early by a signal: the time limit, or a requeue"),
        ("lumitui_node_tmp / || :; kill -TERM $$; sleep 9", 143, "ended early by a signal"),
        ("lumitui_exit 137", 137, "killed with SIGKILL: its memory may have run out"),
        ("lumitui_exit 0", 0, "done"),
        ("false", 1, "failed with exit code 1"),
        ("lumitui_exit 85", 85, "stopped, with its checkpoint saved"),
        ("goes_on=yes; lumitui_exit 85", 85, ""),
        (": >cancelled; lumitui_exit 1", 1, "cancelled"),
    ],
)
def test_each_end_of_the_script_is_told_but_a_requeue(
    listener: Webhook, tmp_path: Path, how: str, code: int, end: str, logout: bool
) -> None:
    (tmp_path / ".bash_logout").write_text("false\n")  # it does not change what is told
    folder, how = made_folder(tmp_path / "run"), f"lumitui_prepare() {{ :; }}\n{how}"
    assert leaving(folder, address(listener), how, home=tmp_path if logout else None)[0] == code
    assert [f"at lumi: {end}" in body for _, _, body in listener.told] == ([True] if end else [])


def test_what_the_job_makes_on_its_node_goes_too(listener: Webhook, tmp_path: Path) -> None:
    made = tmp_path / "made"
    made.mkdir()
    assert leaving(made_folder(tmp_path / "run"), address(listener), f"NODE_TMP={made}")[0] == 0
    assert not made.exists() and len(listener.told) == 1


def test_where_nodes_are_offline_the_preview_says_so() -> None:
    from lumitui.app.launch.adviser.adviser import findings

    for name, mail, expected in (
        ("leonardo", None, ["notify-offline"]),
        ("lumi", None, []),
        ("lumi", "me@example.org", ["notify-mail"]),
    ):
        there = site(name)
        partition = next(iter(there.partitions))
        notify = {"webhook": "HOOK", "mail": mail}
        keys = {"site": name, "partition": partition, "notify": notify, "container": {}}
        account = {"account": there.account.example or "x"}
        launch = compose(changed(JOB, keys | account, "t"), there)
        found = [one.rule for one in findings(launch, there) if one.rule.startswith("notify")]
        assert found == expected
        assert "--mail-user" not in launch.script


def test_slurm_mails_where_the_profile_says_so() -> None:
    mailing = site("lumi").model_copy(update={"mail": True})
    script = compose(changed(JOB, {"notify": {"mail": "me@example.org"}}, "t"), mailing).script
    assert "#SBATCH --mail-type=END,FAIL\n#SBATCH --mail-user=me@example.org\n" in script
    assert "lumitui_notify" not in script
    for wrong in ("me", "a b@c", "a@b\n#SBATCH --x", "$(id)@x", "-x@y z"):
        with pytest.raises(InputError):
            changed(JOB, {"notify": {"mail": wrong}}, "t")


@pytest.mark.cluster
def test_of_a_chain_the_last_attempt_tells(
    cluster_runs: Runs,
    cluster: Cluster,
    listener: Webhook,
    tmp_path: Path,
) -> None:
    run = chained(cluster_runs, tmp_path / "train", "85 0", notify="HOOK")

    def is_over() -> bool:
        hurry(cluster, [run])
        cluster_runs.refresh(run.site)
        return cluster_runs.history.get(run.id).state.is_final

    wait_until(is_over, 180)
    ended = cluster_runs.history.get(run.id)
    assert (ended.state, ended.attempt) == (State.DONE, 2)
    wait_until(lambda: bool(listener.told), 30)
    ((_, _, body),) = listener.told
    assert body.startswith(f"{run.id} at minilumi: done after")
    printed = cluster.login(f"cat {run.folder}/* 2>/dev/null; scontrol show job -dd").stdout
    assert SECRET not in printed


def training(runs: Runs, cluster: Cluster, project: Path) -> Run:
    """Send a run that waits for its end; return it once it trains."""
    run = chained(runs, project, "wait", notify="HOOK")
    metrics = f"cat {run.folder}/metrics.jsonl"
    wait_until(lambda: "step" in cluster.login(metrics).stdout, 120)
    runs.refresh(run.site)
    return runs.history.get(run.id)


@pytest.mark.cluster
def test_a_cancelled_job_tells_too(
    cluster_runs: Runs, cluster: Cluster, listener: Webhook, tmp_path: Path
) -> None:
    held = training(cluster_runs, cluster, tmp_path / "held")
    cluster_runs.cancel(held.id)
    said = f"cat {held.folder}/attempt-1.out"
    wait_until(lambda: bool(listener.told), 10, cluster.login(said).stdout)
    assert listener.told[0][2].startswith(f"{held.id} at minilumi: cancelled after")


@pytest.mark.cluster
def test_a_job_that_is_killed_outright_is_told_by_the_laptop_that_watches(
    cluster_runs: Runs, cluster: Cluster, listener: Webhook, tmp_path: Path
) -> None:
    run = training(cluster_runs, cluster, tmp_path / "killed")
    cluster.login(f"scancel --batch --signal=KILL {run.job_id}")
    warnings: list[str] = []
    ended = cluster_runs.wait(run.id, timeout=120, warn=warnings.append)
    assert ended.state is State.FAILED, ended.reason
    ((_, kind, body),) = listener.told
    assert kind == "text/plain" and body.startswith(f"{run.id} at minilumi: failed after ")
    assert body.endswith("; its job was killed.")
    (warning,) = [words for words in warnings if "notification" in words]
    assert warning.endswith("lumitui sent it from this machine.") and SECRET not in warning
    cluster_runs.refresh(run.site)
    assert len(listener.told) == 1
