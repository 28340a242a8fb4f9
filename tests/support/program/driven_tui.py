"""How tests drive the TUI: by keys, with real runs on the embedded site; what the screen shows."""

import asyncio
import re
import time
from collections.abc import Callable
from pathlib import Path

from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Button, OptionList
from textual.widgets._footer import FooterKey

from lumitui.app.history.run import Run
from lumitui.app.job.spec import parse_job
from lumitui.app.launch.send.preview import Preview
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.dialogs.confirm_dialog import Confirm
from lumitui.app.tui.screens.new_screen import NewScreen
from lumitui.app.tui.screens.run_screen import RunScreen
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run

SCRIPT = r"""
import os, sys, time
print("rank", os.environ["RANK"], "says", sys.argv[1:], flush=True)
print("[rank0]: Traceback (most recent call last)")
print("a closing [/] and an opening [red] tag")
print("title \x1b]0;owned\x07 and \x1b[31mcolour\x1b[0m")
print("10%\r50%\r100% of the bar", flush=True)
if "--long" in sys.argv:
    print("waiting", flush=True)
    for _ in range(600):
        time.sleep(0.1)
if "--fail" in sys.argv:
    raise ModuleNotFoundError("No module named 'nowhere[/]'")
print("the last line", end="", flush=True)
"""

JOB = """name: hello
site: laptop
partition: local
time: "00:05:00"
launcher: {launcher}
script: hello.py
args: [{args}]
proof: "off"
"""


async def until(
    pilot: Pilot[int], condition: Callable[[], object], what: str, seconds: float = 90
) -> None:
    """Wait until `condition` holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"never {what}; on the screen:\n{shown(pilot)}"
        await pilot.pause(0.05)


async def sees(pilot: Pilot[int], pattern: str) -> None:
    """Wait until the screen shows what `pattern` matches."""
    await until(pilot, lambda: re.search(pattern, shown(pilot)), f"seen: {pattern}")


def shown(pilot: Pilot[int]) -> str:
    """Return what is on the screen as lines of text."""
    lines = [line.rstrip() for line in screen_lines(pilot.app)]
    return "\n".join(lines).replace("\xa0", " ")


def screen_lines(app: App[int]) -> list[str]:
    """Return each row of the terminal as text, with the cells that nothing was drawn on."""
    strips = app.screen._compositor.render_strips(app.screen.size)
    return ["".join(segment.text for segment in line) for line in strips]


def keys_below(pilot: Pilot[int]) -> str:
    """Return the keys of the footer that can be read in full."""
    width = pilot.app.size.width
    keys = pilot.app.screen.query(FooterKey)
    return " ".join(
        f"{key.key_display} {key.description}" for key in keys if key.region.right <= width
    )


def app_of(pilot: Pilot[int]) -> LumiApp:
    """Return the app that `pilot` drives."""
    assert isinstance(pilot.app, LumiApp)
    return pilot.app


def runs_of(pilot: Pilot[int]) -> list[Run]:
    """Return the runs in history, the newest first."""
    return app_of(pilot).runs.history.page()


async def submit(pilot: Pilot[int], job: str = "job.yaml") -> Run:
    """Submit a job file through the screen that makes runs, by keys; return the new run."""
    before = {run.id for run in runs_of(pilot)}
    await pilot.press("2")
    await until(pilot, lambda: isinstance(pilot.app.screen, NewScreen), "the New screen")
    menu = pilot.app.screen.query_one(OptionList)
    wanted = str(Path.cwd() / job)
    await until(pilot, lambda: wanted in {item.id for item in menu.options}, "the job file")
    menu.highlighted = menu.get_option_index(wanted)
    menu.focus()
    await pilot.press("enter")
    await until(pilot, lambda: "requests " in shown(pilot), "a preview")
    await pilot.press("s")
    await until(pilot, lambda: isinstance(pilot.app.screen, Confirm), "the question")
    await sees(pilot, "1 node, 2 ranks on CPU")
    assert pilot.app.screen.focused is pilot.app.screen.query_one("#no")
    await pilot.press("y")
    await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen), "the new run")
    screen = pilot.app.screen
    assert isinstance(screen, RunScreen) and screen.chosen not in before
    return app_of(pilot).runs.history.get(screen.chosen)


def _preview(app: LumiApp, job: str) -> Preview:
    path = Path.cwd() / job
    return app.runs.preview(parse_job(path.read_text(), job), path.parent, job_file=path)


async def sent(pilot: Pilot[int], job: str = "job.yaml") -> Run:
    """Send a job file without the screens; return the new run. Keys cost a second: `submit`."""
    app = app_of(pilot)
    return await asyncio.to_thread(lambda: app.runs.send(_preview(app, job)))


def kept(app: LumiApp, run_id: str = "hello-000041", /, **changes: object) -> Run:
    """Put a run of `job.yaml` into history that ended well; nothing was sent, nothing runs."""
    preview = _preview(app, "job.yaml")
    launch = preview.launch
    now = time.time()
    made: dict[str, object] = {
        "name": launch.spec.name, "site": launch.spec.site, "created": now - 60,
        "spec": launch.spec, "script": launch.script, "command": preview.command,
        "layout": launch.layout, "price": launch.price, "global_batch": None,
        "deepspeed_config": None, "snapshot": "a" * 64, "project": str(preview.project),
        "job_file": str(preview.job_file), "job_id": "41", "state": State.DONE, "rc": 0,
        "started": now - 50, "ended": now - 40,
    }  # fmt: skip
    run = a_run(run_id, **(made | changes))
    app.runs.history.begin(run)
    return run


async def ended(pilot: Pilot[int], run_id: str) -> Run:
    """Wait until a run has ended, and return it."""
    history = app_of(pilot).runs.history
    await until(pilot, lambda: history.get(run_id).state.is_final, "the end of the run", 60)
    return history.get(run_id)


def cut_off(pilot: Pilot[int]) -> list[str]:
    """Return the labels of buttons that cannot be read in full."""
    text, width = shown(pilot), pilot.app.size.width
    labels = {
        str(button.label): button.region
        for button in pilot.app.screen.query(Button)
        if button.is_on_screen and all(node.display for node in button.ancestors_with_self)
    }
    return [
        label
        for label, at in labels.items()
        if label not in text or at.right > width or not at.area
    ]
