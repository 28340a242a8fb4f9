"""The verbs that start something larger: the demo, the terminal interface, the browser's."""

import os
import sys
from pathlib import Path

import click

from lumitui.app.cli import output
from lumitui.app.cli.session import GivenPath, core, open_tui, port_option


@click.command()
@click.option(
    "--to",
    "target",
    type=GivenPath(),
    default="lumitui-demo",
    show_default=True,
    help="The demo's folder.",
)
def demo(target: Path) -> int:
    """Train on this machine, then again on twice the nodes."""
    from lumitui.app.cli import demo_session as trial
    from lumitui.app.runs.guide.demo_job import prepare

    job = prepare(target)
    if os.environ.get("DEMO") != "headless" and output.has_person() and sys.stdout.isatty():
        return open_tui(job, demo=True)
    with core() as runs:
        return trial.headless(runs, job)


@click.command()
@click.argument("job", required=False, type=GivenPath())
def tui(job: Path | None) -> int:
    """Open the terminal interface, with a job file if you give one."""
    return open_tui(job)


@click.command()
@click.argument("job", required=False, type=GivenPath())
@port_option
def web(job: Path | None, port: int) -> None:
    """Show the terminal interface in a browser on this machine.

    It prints the address to open, which has a token. Keep it to yourself: others could act as
    you with it. The tabs share one connection to each site. Ctrl-C ends it.
    """
    from lumitui.app.cli.web import serve_web

    serve_web(job, port)


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a shell's completion script.

    Use it with `eval "$(lumitui completion bash)"`.
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    output.put(found(ctx.find_root().command, {}, "lumitui", "_LUMITUI_COMPLETE").source())
