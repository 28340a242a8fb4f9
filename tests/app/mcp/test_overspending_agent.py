"""An agent that wants more than it may have gets nothing: each try is refused, and nothing is sent.

The job of these tests holds two ranks for five minutes: a sixth of a GPU-hour.
"""

import asyncio
import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from lumitui.app.history.run import AttemptRecord
from lumitui.app.job.settings import Settings
from lumitui.app.mcp.agent_tools import AgentTools
from lumitui.app.mcp.allowance import hours_of_preview, used_hours
from lumitui.app.mcp.preview_tokens import LIFE_SECONDS
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import InputError
from tests.support.jobs.made_runs import SPEC, a_run
from tests.support.program.agent import agent_here, agent_in, allow
from tests.support.program.command_line import HELLO, history, lt
from tests.support.program.home import Home
from tests.support.servers.sshd import Sshd

FORGED = (AttemptRecord(1, "1", "nid005001", started=1.9e9, ended=1.0, rc=0, end="done"),)
USED = "it was already used, or it is more than ten minutes old"
SLEEPS = "import time\ntime.sleep(60)\n"
OTHER = r"for a different action\."


LUMI = """name: a
site: lumi
account: project_462000001
partition: small-g
gpus_per_node: 1
time: "01:00:00"
script: hello.py
"""


def sent(tools: AgentTools) -> int:
    return len(tools.list_runs()["runs"])


async def test_two_submits_at_once_with_one_token_send_one_job(
    settings: Settings, home: Home, work: Path
) -> None:
    async with agent_here(settings, work) as agent:
        call = {"path": "job.yaml", "token": await agent.token()}
        tries = [agent.client.call_tool("submit_job", dict(call)) for _ in range(4)]
        errors = [result.is_error for result in await asyncio.gather(*tries)]
        assert USED in await agent.refused("submit_job", **call)
    assert sorted(map(bool, errors)) == [False, True, True, True]
    assert len(history(home)) == 1


@pytest.mark.parametrize("token", ["", "yes", "0" * 32])
def test_a_token_that_no_preview_gave_sends_nothing(tools: AgentTools, token: str) -> None:
    tools.preview_job("job.yaml")
    with pytest.raises(InputError, match=USED):
        tools.submit_job("job.yaml", token)
    assert sent(tools) == 0


def test_a_server_knows_no_token_of_another_one(
    tools: AgentTools, work: Path, settings: Settings
) -> None:
    with Runs(settings) as runs:
        token = AgentTools(runs, settings, work).preview_job("job.yaml")["token"]
    with pytest.raises(InputError, match=USED):
        tools.submit_job("job.yaml", token)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("job.yaml", HELLO.replace("00:05:00", "00:05:01")),
        ("job.yaml", HELLO + "env: {A: b}\n"),
        ("hello.py", "print('other code')\n"),
        ("more.py", "print('one more file')\n"),
    ],
)
def test_what_was_edited_after_the_preview_is_not_sent(
    tools: AgentTools, work: Path, file: str, text: str
) -> None:
    token = tools.preview_job("job.yaml")["token"]
    before = (work / file).read_text() if (work / file).exists() else None
    (work / file).write_text(text)
    with pytest.raises(InputError, match=OTHER):
        tools.submit_job("job.yaml", token)
    (work / file).unlink() if before is None else (work / file).write_text(before)
    with pytest.raises(InputError, match=USED):
        tools.submit_job("job.yaml", token)
    assert sent(tools) == 0


def test_the_token_of_one_preview_confirms_nothing_else(tools: AgentTools, work: Path) -> None:
    def token() -> str:
        return str(tools.preview_job("job.yaml")["token"])

    (work / "other.yaml").write_text(HELLO)
    with pytest.raises(InputError, match=OTHER):
        tools.submit_job("other.yaml", token())
    (run,) = tools.submit_job("job.yaml", token())["runs"]
    with pytest.raises(InputError, match=OTHER):
        tools.cancel_run(run["id"], token())
    with pytest.raises(InputError, match=OTHER):
        tools.resubmit(run["id"], token())
    plan = tools.preview_resubmit(run["id"])
    with pytest.raises(InputError, match=OTHER):
        tools.resubmit(run["id"], plan["token"], settings=["time=00:06:00"])
    assert sent(tools) == 1


def test_a_token_is_for_the_login_that_the_ssh_configuration_named_at_its_preview(
    tools: AgentTools, work: Path, home: Home
) -> None:
    allow(home, "{gpu_hours: 9, sites: [far], may: [preview, submit]}")
    config = home.config / "ssh_config"
    config.write_text("Host far\n HostName a.example\n")
    profile = home.config / "sites" / "far.yaml"
    profile.parent.mkdir(exist_ok=True)
    hosts = f"hosts: {{login: far, user: me, ssh_config: {config}, fingerprints: null}}"
    profile.write_text(f"extends: lumi\nname: far\n{hosts}\n")
    assert tools._runs.login_address("far") == "me@a.example"
    (work / "job.yaml").write_text(LUMI.replace("site: lumi", "site: far"))
    first, second = (tools.preview_job("job.yaml")["token"] for _ in range(2))
    config.write_text("Host far\n HostName b.example\n")
    with pytest.raises(InputError, match=OTHER):
        tools.submit_job("job.yaml", first)
    assert tools._runs.history.count() == 0
    profile.write_text(profile.read_text().replace("user: me", "user: other"))
    with pytest.raises(InputError, match=OTHER):
        tools.submit_job("job.yaml", second)


@pytest.mark.parametrize("nodes", [[-1], [0], [2, 0]])
def test_a_number_of_nodes_below_one_scales_nothing(tools: AgentTools, nodes: list[int]) -> None:
    with pytest.raises(InputError, match="is not a number of nodes"):
        tools.scaling("last", nodes)


@pytest.mark.parametrize("words", ["x" * 60_000, "a " * 5_000])
def test_a_filter_that_is_too_long_is_told_so(tools: AgentTools, words: str) -> None:
    with pytest.raises(InputError, match="longer than 1,000 characters"):
        tools.list_runs(matching=words)
    assert tools.list_runs(matching="a " * 500) == {"runs": []}
    assert tools.list_runs(matching="%" * 1000) == {"runs": []}


@pytest.mark.parametrize(("awake", "slept"), [(1.0, 0.0), (0.0, 1.0), (1.0, -5.0)])
def test_a_token_is_good_for_ten_minutes_even_if_the_laptop_sleeps_or_its_clock_is_set_back(
    work: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch, awake: float, slept: float
) -> None:
    now, day, began = [0.0], [0.0], time.time()
    monkeypatch.setattr(time, "time", lambda: began + day[0])
    with Runs(settings) as runs:
        tools = AgentTools(runs, settings, work, clock=lambda: now[0])
        token = tools.preview_job("job.yaml")["token"]
        now[0], day[0] = awake * (LIFE_SECONDS + 1), (awake + slept) * (LIFE_SECONDS + 1)
        with pytest.raises(InputError, match="ten minutes"):
            tools.submit_job("job.yaml", token)
        assert runs.history.count() == 0


@pytest.mark.parametrize(
    ("edit", "hours"),
    [
        (('time: "00:05:00"', 'time: "12:00:00"'), 24),
        (("proof", "chain: 20\nresume: [--resume]\nproof"), 20 / 6),
        (("proof", "grid: {--lr: [1, 2, 3, 4, 5, 6, 7]}\nproof"), 7 / 6),
        (("launcher: plain\nstrategy: single", "nodes: 8"), 8 / 6),
        (
            (
                'time: "00:05:00"\nlauncher: plain\nstrategy: single',
                'time: "00:00:01"\nnodes: 40',
            ),
            80 / 60,
        ),
    ],
    ids=["time", "chain", "grid", "nodes", "seconds"],
)
def test_a_job_beyond_the_allowance_gets_no_token(
    tools: AgentTools, work: Path, edit: tuple[str, str], hours: float
) -> None:
    (work / "job.yaml").write_text(HELLO.replace(*edit))
    preview = tools.preview_job("job.yaml")
    assert preview["token"] is None
    assert preview["gpu_hours"] == pytest.approx(hours)
    assert f"may take {hours:.4g} GPU-hours, but agents have only 1 of 1 left" in preview["refused"]


def test_what_is_sent_counts_whole_until_it_has_ended(
    tools: AgentTools, home: Home, work: Path
) -> None:
    (work / "hello.py").write_text(SLEEPS)
    allow(home, "{gpu_hours: 0.4, sites: [laptop], may: [preview, submit, cancel]}")
    tokens = [tools.preview_job("job.yaml")["token"] for _ in range(3)]
    runs = [tools.submit_job("job.yaml", token)["runs"][0] for token in tokens[:2]]
    with pytest.raises(InputError, match=r"agents have only 0\.06667 of 0\.4 left"):
        tools.submit_job("job.yaml", tokens[2])
    for run in runs:
        tools.cancel_run(run["id"], tools.preview_cancel(run["id"])["token"])
    assert sent(tools) == 2


@pytest.mark.parametrize(
    ("facts", "hours"),
    [
        ({"state": State.SENDING}, 16),
        ({"state": State.UNKNOWN}, 16),
        ({"state": State.QUEUED, "job_id": "2"}, 16),
        ({"state": State.RUNNING, "started": 9_000.0}, 16),
        ({"state": State.RUNNING, "started": 9_000.0, "attempt": 3}, 48),
        ({"state": State.RUNNING, "spec": SPEC.model_copy(update={"chain": 4})}, 64),
        ({"state": State.DONE, "started": 8_200.0, "ended": 10_000.0}, 8),
        ({"state": State.FAILED, "started": 8_200.0, "ended": 10_000.0, "attempt": 2}, 24),
        ({"state": State.DONE, "started": 8_200.0, "ended": 10_000.0, "attempts": FORGED}, 8),
        ({"state": State.DONE, "started": 8_200.0, "ended": 8_199.0}, 16),
        ({"state": State.DONE, "started": 8_200.0, "updated": 8_201.0}, 16),
        ({"state": State.CANCELLED, "attempt": 2}, 16),
        ({"state": State.FAILED}, 16),
        ({"state": State.CANCELLED}, 0),
        ({"state": State.REFUSED}, 0),
        ({"state": State.NOT_SENT}, 0),
    ],
)
def test_a_run_counts_whole_until_it_has_ended_and_then_as_it_ran(
    runs: Runs, facts: dict[str, Any], hours: float
) -> None:
    """The run holds 16 GPUs for an hour; of a requeue, only the last attempt's time is known.

    What the job itself wrote of its attempts, here an end long before the start, takes nothing off.
    """
    runs.history.begin(a_run("user-000001", **facts))
    assert used_hours(runs, 10_000.0) == {}
    runs.history.begin(a_run("agent-000002", **facts, note="a try #agent"))
    assert used_hours(runs, 10_000.0) == {"agent-000002": pytest.approx(hours)}


def test_a_history_that_is_removed_gives_a_running_server_no_gpu_hours_back(
    tools: AgentTools, home: Home, work: Path, settings: Settings
) -> None:
    token = tools.preview_job("job.yaml")["token"]
    (run,) = tools.submit_job("job.yaml", token)["runs"]
    tools._runs.wait(run["id"])
    left = tools.list_sites()["gpu_hours_left"]
    assert left < 1
    history_file = settings.data / "history.db"
    for path in history_file.parent.glob("history.db*"):
        path.unlink()
    assert tools.list_runs()["runs"] == []
    assert tools.list_sites()["gpu_hours_left"] == pytest.approx(left)
    allow(home, "{gpu_hours: 0.16, sites: [laptop], may: [preview, submit]}")
    assert tools.preview_job("job.yaml")["token"] is None


def test_a_run_whose_tag_the_user_takes_off_counts_no_more(
    tools: AgentTools, work: Path, home: Home
) -> None:
    (work / "hello.py").write_text(SLEEPS)
    token = tools.preview_job("job.yaml")["token"]
    (run,) = tools.submit_job("job.yaml", token)["runs"]
    assert tools.list_sites()["gpu_hours_left"] == pytest.approx(5 / 6)
    tools._runs.history.update(run["id"], note="")
    assert tools.list_sites()["gpu_hours_left"] == 1
    assert lt(home, "cancel", run["id"], "--yes").returncode == 0


def test_no_setting_of_a_grid_hides_that_an_agent_sent_its_runs(
    tools: AgentTools, work: Path
) -> None:
    values = [f"{word * 120} #agents # #b" for word in "xy"]
    (work / "job.yaml").write_text(HELLO + f"grid: {{--lr: {json.dumps(values)}}}\n")
    token = tools.preview_job("job.yaml")["token"]
    runs = tools.submit_job("job.yaml", token)["runs"]
    assert [run["sent_by_agent"] for run in runs] == [True, True]
    assert all(len(run["untrusted_text"]["note"]) <= 200 for run in runs)


def test_a_job_counts_what_it_keeps_from_others(runs: Runs, tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    job = tmp_path / "job.yaml"
    text = (
        "name: a\nsite: lumi\naccount: project_462000001\npartition: {}\ngpus_per_node: 1\n"
        "time: '01:00:00'\nscript: train.py\n"
    )

    def hours(partition: str, more: str = "") -> float:
        job.write_text(text.format(partition) + more)
        return hours_of_preview(runs.preview(job))

    assert hours("small-g") == 1
    assert hours("small-g", "cpus_per_task: 28\n") == 4
    assert hours("small-g", "memory: 480G\n") == 8
    assert hours("small-g", "exclusive: true\n") == 8
    assert hours("standard-g") == 8


FOLLOWED = """sbatch: [--exclude=nid001]
then: {b: {script: hello.py, args: [b]}}
"""


@pytest.mark.parametrize(
    ("more", "options"),
    [
        ("", ["--no-requeue"]),
        ("sbatch: [--exclude=nid001]\n", ["--exclude=nid001", "--no-requeue"]),
        ("sbatch: [--no-requeue]\n", ["--no-requeue"]),
        ("chain: 4\nresume: [--resume]\nsignal: USR1@300\n", []),
        ("grid: {--lr: [1, 2]}\n", ["--no-requeue"]),
        (FOLLOWED, ["--exclude=nid001", "--no-requeue"]),
    ],
)
def test_slurm_never_requeues_a_job_of_an_agent_beyond_what_it_counts(
    tools: AgentTools, home: Home, work: Path, more: str, options: list[str]
) -> None:
    allow(home, "{gpu_hours: 9, sites: [lumi], may: [preview, submit]}")
    (work / "job.yaml").write_text(LUMI + more)
    _, previews = tools._job("job.yaml")
    assert [list(one.launch.spec.sbatch) for one in previews] == [options] * len(previews)
    assert all(("#SBATCH --no-requeue" in one.launch.script) == bool(options) for one in previews)
    shown = tools.preview_job("job.yaml")
    assert shown["refused"] == "" and shown["token"]


def test_a_run_that_slurm_could_requeue_nevertheless_is_refused(
    tools: AgentTools, home: Home, work: Path
) -> None:
    allow(home, "{gpu_hours: 9, sites: [lumi], may: [preview, submit]}")
    (work / "job.yaml").write_text(LUMI + "then: {b: {sbatch: [--exclude=nid001]}}\n")
    shown = tools.preview_job("job.yaml")
    assert shown["token"] is None and "Slurm could requeue this job" in shown["refused"]


def test_an_agent_resubmits_a_run_so_that_slurm_does_not_requeue_it(
    tools: AgentTools, home: Home, work: Path, runs: Runs
) -> None:
    allow(home, "{gpu_hours: 99, sites: [lumi], may: [preview, submit]}")
    (work / "job.yaml").write_text(LUMI)
    spec = runs.preview(work / "job.yaml").launch.spec
    runs.history.begin(
        a_run("user-000001", site="lumi", spec=spec, state=State.DONE, snapshot="s" * 16,
              project=str(work))
    )  # fmt: skip
    _, plan = tools._resubmission("user-000001", None, ["sbatch=[--exclude=nid001]"], "same", None)
    assert plan.preview.launch.spec.sbatch == ("--exclude=nid001", "--no-requeue")
    assert "#SBATCH --no-requeue" in plan.preview.launch.script


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("sbatch: [--tim=48:00:00]\n", "--tim=48:00:00 under `sbatch:`"),
        ("sbatch: [--gpus-per-task=8]\n", "--gpus-per-task=8 under `sbatch:`"),
        ("sbatch: ['--exclude=a --tim=48:00:00']\n", "--tim=48:00:00 under `sbatch:`"),
        ('sbatch: ["--constraint=a\\u00a0--nodes=9"]\n', "--nodes=9 under `sbatch:`"),
        ("sbatch: ['--constraint=\"a --nodes=9']\n", "--nodes=9 under `sbatch:`"),
        ("secrets: [AGENT_TEST_KEY]\n", "may not send AGENT_TEST_KEY"),
        ("grid: {secrets.0: [A]}\n", ""),
        ("ship_secrets: [.env]\n", "`ship_secrets:`"),
        ("follow_links: [link]\n", "`follow_links:`"),
    ],
)
def test_a_job_file_that_reaches_for_more_gets_no_token(
    tools: AgentTools, work: Path, monkeypatch: pytest.MonkeyPatch, more: str, words: str
) -> None:
    monkeypatch.setenv("AGENT_TEST_KEY", "value-of-the-key")
    (work / "job.yaml").write_text(HELLO + more)
    if not words:
        with pytest.raises(InputError):
            tools.preview_job("job.yaml")
        return
    preview = tools.preview_job("job.yaml")
    assert preview["token"] is None and words in preview["refused"], preview["refused"]
    assert "value-of-the-key" not in str(preview)


@pytest.mark.parametrize(
    "more",
    [
        "project: ..\n",
        "stage: {DATA: /etc/hostname}\n",
        "stage: {DATA: ~/private}\n",
        "stage: {DATA: linked}\n",
        "deepspeed: {config: conf/ds.json}\nfollow_links: [conf]\n",
        "grid: {project: [., ..]}\n",
    ],
)
def test_what_is_outside_of_the_folder_is_neither_sent_nor_told(
    tools: AgentTools, work: Path, more: str
) -> None:
    text = HELLO.replace("plain", "srun").replace("single", "zero1") if "config" in more else HELLO
    (work / "job.yaml").write_text(text + more)
    (work.parent / "conf").mkdir()
    (work.parent / "conf" / "ds.json").write_text('{"train_micro_batch_size_per_gpu": 1}')
    (work / "conf").symlink_to(work.parent / "conf")
    (work.parent / "told.env").write_text("SECRET_KEY=abc\n")
    (work / "linked").symlink_to("/etc/hostname")
    for tool in (tools.preview_job, tools.check_job):
        with pytest.raises(InputError, match="Agents may not read /") as caught:
            tool("job.yaml")
        assert "told" not in str(caught.value)


def test_a_secret_that_the_user_allows_is_sent(
    tools: AgentTools, home: Home, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY_A", "a")
    allow(home, "{gpu_hours: 1, sites: [laptop], may: [preview, submit], secrets: [KEY_A]}")
    (work / "job.yaml").write_text(HELLO + "secrets: [KEY_A]\n")
    assert tools.preview_job("job.yaml")["token"]


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        ("{}", "Agents may not submit: `agents.may` does not list `submit`."),
        ("{gpu_hours: 9, sites: [laptop]}", "Agents may not submit"),
        ("{gpu_hours: 9, sites: [lumi], may: [preview, submit]}", "not submit to laptop"),
        ("{sites: [laptop], may: [preview, submit]}", "`agents.gpu_hours` is not set"),
    ],
)
def test_what_the_user_does_not_list_is_not_allowed(
    tools: AgentTools, home: Home, words: str, refusal: str
) -> None:
    allow(home, words)
    preview = tools.preview_job("job.yaml")
    assert preview["token"] is None and refusal in preview["refused"]


def test_without_agents_in_the_settings_nothing_is_sent_or_cancelled(
    tools: AgentTools, home: Home, work: Path
) -> None:
    (home.config / "settings.yaml").unlink()
    assert lt(home, "submit", str(work / "job.yaml"), "--yes", "--wait").returncode == 0
    assert tools.preview_job("job.yaml")["token"] is None
    assert tools.preview_resubmit("last")["token"] is None
    with pytest.raises(InputError, match="may not cancel"):
        tools.preview_cancel("last")
    assert sent(tools) == 1


async def test_the_user_may_take_the_allowance_back_at_any_time(
    settings: Settings, home: Home, work: Path
) -> None:
    async with agent_here(settings, work) as agent:
        token = await agent.token()
        allow(home, "{gpu_hours: 1, sites: [laptop], may: [preview]}")
        assert "may not submit" in await agent.refused("submit_job", path="job.yaml", token=token)
        allow(home, "{gpu_hours: true, sites: [laptop], may: [preview, submit]}")
        assert "gpu_hours" in await agent.refused("preview_job", path="job.yaml")
        allow(home, "{gpu_hours: lots}")
        refused = await agent.refused("preview_job", path="job.yaml")
        assert "settings.yaml:1" in refused and "gpu_hours" in refused
    assert history(home) == []


def test_an_agent_cancels_no_run_of_the_user(tools: AgentTools, home: Home, work: Path) -> None:
    (work / "hello.py").write_text(SLEEPS)
    assert lt(home, "submit", str(work / "job.yaml"), "--yes").returncode == 0
    with pytest.raises(InputError, match="No agent submitted hello-") as caught:
        tools.preview_cancel("last")
    assert "lumitui cancel hello-" in caught.value.hint
    assert lt(home, "cancel", "last", "--yes").returncode == 0


@pytest.mark.parametrize(
    "path",
    [
        "../out.yaml",
        "/etc/out.yaml",
        ".github/out.yaml",
        "train.py",
        "up/out.yaml",
        "list.yaml",
        "a\x00.yaml",
        "a\x1b[2J.yaml",
        "loop",
    ],
)
def test_an_agent_writes_job_files_of_its_folder_alone(
    tools: AgentTools, work: Path, path: str
) -> None:
    (work / "up").symlink_to(work.parent)
    (work / "loop").symlink_to("loop")
    (work / "list.yaml").write_text("services: [a]\n")
    with pytest.raises(InputError):
        tools.write_job(path, HELLO)
    assert (work / "list.yaml").read_text() == "services: [a]\n"
    assert not list(work.parent.glob("out.yaml"))


def test_what_is_too_large_for_a_job_file_is_not_written(tools: AgentTools, work: Path) -> None:
    with pytest.raises(InputError, match="too large"):
        tools.write_job("big.yaml", "a" * 100_001)
    assert not (work / "big.yaml").exists()


def test_a_site_that_does_not_exist_has_no_status(tools: AgentTools) -> None:
    with pytest.raises(InputError, match="not a site"):
        tools.status("nowhere")


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("preview_job", {}, "The argument path of preview_job: it is missing."),
        ("preview_job", {"path": 5}, "path of preview_job: 5 is not text"),
        ("scaling", {"run_id": "last", "nodes": ["x"]}, "'x' is not a whole number"),
        ("preview_resubmit", {"run_id": "last", "code": "x"}, "'x' is not one of"),
        ("preview_job", {"path": "job.yaml", "time": "1"}, "no argument 'time'"),
    ],
)
async def test_a_wrong_argument_is_told_in_plain_words(
    home: Home, work: Path, tool: str, arguments: dict[str, object], words: str
) -> None:
    async with agent_in(home, work) as agent:
        refused = await agent.refused(tool, **arguments)
    assert words in refused and "pydantic" not in refused and f"{tool} accepts" in refused


def test_the_folder_of_an_agent_is_neither_the_home_nor_the_disk(settings: Settings) -> None:
    with Runs(settings) as runs:
        for folder in (Path("/"), Path(os.environ["HOME"]), Path("/nowhere")):
            with pytest.raises(InputError, match="cannot work in"):
                AgentTools(runs, settings, folder)


def test_an_agent_cannot_write_its_own_allowance(settings: Settings, home: Home) -> None:
    with Runs(settings) as runs:
        tools = AgentTools(runs, settings, home.config)
        with pytest.raises(InputError, match="cannot use settings"):
            tools.write_job("settings.yaml", "agents: {gpu_hours: 1000}\nsite: laptop\n")


def test_two_servers_cannot_spend_the_same_gpu_hours(
    work: Path, settings: Settings, home: Home
) -> None:
    (work / "hello.py").write_text(SLEEPS)
    allow(home, "{gpu_hours: 0.2, sites: [laptop], may: [preview, submit]}")
    outcomes: list[str] = []

    def submit(tools: AgentTools, token: str) -> None:
        try:
            outcomes.append(tools.submit_job("job.yaml", token)["runs"][0]["id"])
        except InputError as error:
            outcomes.append(error.message)

    with Runs(settings) as first, Runs(settings) as second:
        servers = [AgentTools(runs, settings, work) for runs in (first, second)]
        tokens = [tools.preview_job("job.yaml")["token"] for tools in servers]
        threads = [
            threading.Thread(target=submit, args=pair) for pair in zip(servers, tokens, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert first.history.count() == 1, outcomes
        assert sum("left" in words for words in outcomes) == 1, outcomes
        first.cancel("last")


async def test_a_site_that_wants_an_answer_is_not_asked_through_the_agent(
    home: Home, work: Path, server: Sshd
) -> None:
    profile = home.config / "sites" / "far.yaml"
    login = server.config.read_text().split()[1]
    hosts = f"hosts: {{login: {login}, ssh_config: {server.config}, fingerprints: null}}"
    profile.write_text(f"extends: lumi\nname: far\n{hosts}\n")
    with Runs(home.settings) as runs:
        runs.history.begin(a_run("far-000001", site="far", state=State.RUNNING, job_id="7"))
    async with agent_in(home, work) as agent:
        refused = await agent.refused("run_log", run_id="far-000001")
        assert "host key" in refused and "`lumitui status` in a terminal" in refused
        warnings = (await agent.call("status"))["warnings"]["untrusted_text"]
        assert warnings and "host key" in warnings[0]
    assert server.logged("Accepted") == 0
