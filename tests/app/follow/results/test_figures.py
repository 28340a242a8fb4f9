"""A run's metrics on the screen: figures, the curve of its loss, and what its log says."""

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from lumitui.app.follow.results.summary import Figures
from lumitui.app.history.history import History
from lumitui.app.job.settings import Settings
from lumitui.app.runs.core import RunsCore
from lumitui.app.tui.app import LumiApp
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run
from tests.support.jobs.small_jobs import hello_job
from tests.support.program.driven_tui import ended, sees, shown, submit

TRAINS = """\
import json, os
with open(os.environ["RUN_DIR"] + "/metrics.jsonl", "a") as file:
    for step in range(1, 41):
        print(json.dumps({"step": step, "loss": 2.5 / step, "samples_per_s": 100}), file=file)
for step in range(1, 41):
    print(f"it {step} | grad norm: {3.0 - step / 20:.2f}")
"""
JOB = """\
name: train
site: laptop
account: none
partition: local
time: "00:05:00"
launcher: srun
gpus_per_node: 2
script: train.py
container: {none: true}
metrics:
  grad_norm: 'grad norm: ([0-9.]+)'
  never: 'nothing like (this)'
"""


async def test_the_curve_and_the_log_s_metrics_are_on_the_screen(
    settings: Settings, project: Path
) -> None:
    (project / "train.py").write_text(TRAINS)
    (project / "train.yaml").write_text(JOB)
    async with LumiApp(settings).run_test(size=(80, 24)) as pilot:
        run = await submit(pilot, "train.yaml")
        assert (await ended(pilot, run.id)).state is State.DONE
        await pilot.press("m")
        await sees(
            pilot,
            r"│ +loss last +━ 0\.0625 *│\n[\s\S]*[⠁-⣿][\s\S]*┬[\s\S]* 20 +25 +30 +35 +40 *│\n",
        )
        await sees(pilot, r"│ +samples_per_s +100 +[▁-█]+ *│\n")
        await sees(pilot, r",\. Metric")
        await pilot.press("full_stop")
        await sees(pilot, r"│ +samples_per_s last +━ 100 *│\n")
        await pilot.press("comma")
        await sees(pilot, r"│ +loss last +━ ")
        await sees(pilot, r"grad_norm +1 .*[▁-▇]{5}")
        await pilot.press("G")
        await sees(pilot, "never +not found at the end of the log")
        assert "of metrics.jsonl" not in shown(pilot), "every line could be read"


async def test_curves_of_the_log_grow_while_it_is_followed_without_a_request(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = LumiApp(settings)
    spec = hello_job(metrics={"loss": "loss ([0-9.]+)", "lr": "lr ([0-9.]+)"})
    run = a_run("r1", site="laptop", state=State.RUNNING, job_id="7", folder=str(tmp_path))
    app.runs.history.begin(replace(run, spec=spec))
    log = tmp_path / "attempt-1.out"
    log.write_text("epoch 0\n")
    monkeypatch.delattr(RunsCore, "read_log")  # the followed log is enough
    async with app.run_test(size=(110, 40)) as pilot:
        await pilot.press("enter")
        await sees(pilot, "has printed nothing that\\s+matches")
        await sees(pilot, "lr +not found at the end of the log")
        with log.open("a") as file:
            file.write("".join(f"step {at} loss {3 - at / 100}\n" for at in range(50)))
        await sees(pilot, r"━ 2\.51")
        await sees(pilot, "[⠁-⣿]{2}")
        assert "nothing that" not in shown(pilot)
        with log.open("a") as file:
            file.write("step 50 loss 1.25\nstep 51 loss 7")
        await sees(pilot, r"━ 1\.25")
        await pilot.press("m")  # the curves alone
        with log.open("a") as file:
            file.write("\nstep 52 loss 0.75\n")
        await sees(pilot, r"━ 0\.75")


async def test_a_run_without_metrics_sees_the_speed_that_its_log_prints(
    settings: Settings, tmp_path: Path
) -> None:
    app = LumiApp(settings)
    run = a_run("r1", site="laptop", state=State.RUNNING, job_id="7", folder=str(tmp_path))
    app.runs.history.begin(replace(run, spec=hello_job()))
    (tmp_path / "attempt-1.out").write_text("step 1 loss 2.5 Images/sec: 1189.2\n")
    async with app.run_test(size=(110, 40)) as pilot:
        await pilot.press("enter")
        await sees(pilot, "No metrics yet")
        await sees(pilot, r"The log prints `Images/sec: 1189\.2`")
        await sees(pilot, "samples_per_s: 'Images/sec")


@pytest.mark.slow
async def test_a_hundred_thousand_steps_leave_the_screen_alive(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [json.dumps({"step": step, "loss": 1 / step}).encode() for step in range(1, 100_001)]
    history = History(settings.history)
    history.begin(a_run("long", site="laptop", state=State.DONE, metrics_offset=7))
    history.metrics.add("long", [*lines, b"half a li"])
    history.close()
    app = LumiApp(settings)
    figures, threads = app.runs.figures, set[threading.Thread]()

    def watched(run_id: str) -> Figures:
        threads.add(threading.current_thread())
        return figures(run_id)

    monkeypatch.setattr(app.runs, "figures", watched)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("enter", "m")
        await sees(pilot, "steps +100,000")
        await sees(pilot, " 40,000 .* 100,000")
        await sees(pilot, "left out +1 line of metrics.jsonl")
    assert threads and threading.main_thread() not in threads, "keys would wait for it"
