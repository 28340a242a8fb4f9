"""The verbs that stay connected to a job: wait, shell and forward."""

import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from lumitui.app.cli.output import Reply, run_data, say, warn
from lumitui.app.cli.send_progress import timed_out, wait_for_end
from lumitui.app.cli.session import MOST, core, json_option, no_nan, run_argument, runs_beginning
from lumitui.app.runs import InputError, LumiError, WaitTimedOut

if TYPE_CHECKING:
    from lumitui.app.runs import Runs

_PATIENCE = 20.0
"""Seconds after which lumitui reports that a port does not answer."""
_SLOWEST = 15.0
"""Maximum number of seconds between two attempts to connect to a forwarded port."""
_DEAF = (
    "Nothing answers on that port yet. The program must listen on all addresses of its node, not "
    "only on 127.0.0.1: tensorboard --bind_all, jupyter --ip=0.0.0.0."
)
node_option = click.option("--node", metavar="NAME", default="", help="Node of the job.")
rank_option = click.option(
    "--rank",
    metavar="N",
    type=click.IntRange(min=0, max=MOST),
    help="Use the node and environment of rank N. [default: the first node]",
)


@click.command()
@click.argument("run_ids", metavar="RUN...", nargs=-1, required=True, shell_complete=runs_beginning)
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    callback=no_nan,
    help="Stop waiting after this time and exit with 124; the jobs keep running.",
)
@json_option
@click.pass_obj
def wait(reply: Reply, run_ids: tuple[str, ...], timeout: float | None) -> None:
    """Wait until runs have ended.

    The exit code is that of the first run that did not succeed: 5 if it failed, 7 if it can never
    start.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    failure: LumiError | None = None
    with core() as runs:
        chosen = [runs.history.get(run_id) for run_id in run_ids]
        for run in chosen:
            seconds = None if deadline is None else max(0.0, deadline - time.monotonic())
            try:
                wait_for_end(reply, runs, run, seconds)
            except LumiError as error:
                failure = failure or error
        chosen = [runs.history.get(run.id) for run in chosen]
        reply.keep([run_data(run) for run in chosen])
    late = [one for one in {run.id: run for run in chosen}.values() if not one.state.is_final]
    if late and isinstance(failure, WaitTimedOut):
        raise timed_out(late, timeout or 0.0)
    if failure is not None:
        raise failure


@click.command()
@run_argument
@click.argument("command", metavar="[-- COMMAND...]", nargs=-1, type=click.UNPROCESSED)
@node_option
@rank_option
def shell(run_id: str, command: tuple[str, ...], node: str, rank: int | None) -> int:
    """Open a shell inside a running job, or run COMMAND inside it.

    The shell has the run's container, environment and folder, and shares the job's cores and GPUs
    with the training. Exits with the command's exit code. In a pipe, prints only its output.

    For example:

    \b
        lumitui shell last -- nvidia-smi
        lumitui shell last --rank 3 -- bash -c 'py-spy dump --pid $(pgrep -n python)'
    """  # noqa: D301 - click needs the backspace itself, or it wraps the example
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if not command and not terminal:
        raise InputError("A shell needs a terminal.", "Give a command after `--`.")
    with core() as runs:
        start = runs.prepare_shell(run_id, command, node=node, rank=rank, terminal=terminal)
        return start()


@click.command()
@run_argument
@click.argument("ports", metavar="PORT[:HERE]")
@node_option
@rank_option
@click.option("--open", "opens", is_flag=True, help="Open the page in the browser once it is up.")
def forward(run_id: str, ports: str, node: str, rank: int | None, opens: bool) -> None:
    """Forward a port of a running job's node to this machine.

    Makes the job's TensorBoard, Jupyter or debugger reachable at 127.0.0.1. HERE is the port on
    this machine. [default: PORT] Stops on Ctrl-C, or when the job ends.
    """
    port, here = _ports(ports)
    with core() as runs:
        forwarded = runs.forward(run_id, port, here, node=node, rank=rank)
        try:
            say(
                f"127.0.0.1:{forwarded.port} forwards to port {port} of the job. Press Ctrl-C to "
                "close it."
            )
            _keep(runs, run_id, f"http://127.0.0.1:{forwarded.port}", forwarded.is_up, opens)
        except KeyboardInterrupt:
            say("Closed the port; the job keeps running.")
        finally:
            forwarded.close()


def _keep(runs: "Runs", run_id: str, address: str, is_up: Callable[[], bool], opens: bool) -> None:
    """Print when the port is up, and wait for the job's end."""
    ended = threading.Event()

    def announce() -> None:
        pause = 1.0
        with suppress(LumiError):  # the wait for the end reports a lost link
            began, warned = time.monotonic(), False
            while not ended.is_set() and not is_up():
                if not warned and time.monotonic() - began > _PATIENCE:
                    warned = True
                    say(_DEAF)
                ended.wait(pause)
                pause = min(2 * pause, _SLOWEST)
            if not ended.is_set():
                say(f"{address} is up.")
                if opens:
                    click.launch(address)

    threading.Thread(target=announce, daemon=True).start()
    try:
        run = runs.wait(run_id, warn=warn)
        say(f"{run.id} is {run.state}, so the port is closed.")
    finally:
        ended.set()


def _ports(text: str) -> tuple[int, int | None]:
    """Return the job's port and the local port (None: the same) from `6006:16006`."""
    numbers = text.split(":")
    if len(numbers) > 2 or not all(number.isascii() and number.isdigit() for number in numbers):
        raise InputError(f"{text!r} is not a port.", "Write 6006, or 6006:16006.")
    port, *here = map(int, numbers)
    if not all(0 < number < 65536 for number in (port, *here)):
        raise InputError(f"{text!r} is not a port.", "Use a port from 1 to 65535.")
    return port, here[0] if here else None
