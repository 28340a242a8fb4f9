"""The verbs that open the TUI, the tour or the demo, or print a schema or a completion script."""

import json
import os
import sys
from pathlib import Path

import click

from lumitui.app.cli import output
from lumitui.app.cli.session import GivenPath, core, open_tui, own_settings, refuse_without_terminal
from lumitui.app.runs import InputError


@click.command()
def tour() -> int:
    """Explore the TUI in a recording, without a cluster or PyTorch.

    Opens the TUI with made-up runs on LUMI. Connects to nothing, sends nothing, and leaves your
    own history and settings unchanged.
    """
    refuse_without_terminal()
    output.say("Opening the recording …")
    from lumitui.app.tui.tour.tour_app import run_tour

    code = run_tour()
    output.say(
        "That was a recording: lumitui sent nothing. `lumitui demo` trains on this machine; "
        "`lumitui new --list` lists example job files."
    )
    return code


@click.command()
@click.option(
    "--to",
    "target",
    type=GivenPath(),
    default="lumitui-demo",
    show_default=True,
    help="Folder for the demo.",
)
def demo(target: Path) -> int:
    """Train on this machine, then again with twice the ranks."""
    from lumitui.app.cli import demo_session as trial
    from lumitui.app.runs.guide import prepare_demo

    job = prepare_demo(target)
    if os.environ.get("DEMO") != "headless" and output.has_person() and sys.stdout.isatty():
        return open_tui(job, demo=True)
    with core() as runs:
        return trial.headless(runs, job)


@click.command()
@click.argument("job", required=False, type=GivenPath())
def tui(job: Path | None) -> int:
    """Open the TUI, optionally with a job file."""
    return open_tui(job)


@click.command()
@click.argument("folder", type=GivenPath(), default=".")
def mcp(folder: Path) -> None:
    """Serve runs to a coding agent (MCP) on stdin and stdout.

    FOLDER contains the job files and projects that the agent may use. [default: the current one]
    Without `agents:` in settings.yaml, the agent may read and preview but send nothing.
    """
    try:
        from lumitui.app.mcp.mcp_server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
            raise
        from lumitui.app.job.settings import install_hint

        raise InputError(
            "`lumitui mcp` requires the package mcp 2, which is not installed.",
            install_hint("mcp"),
        ) from error
    serve(own_settings(), folder)


@click.command()
@click.argument("kind", type=click.Choice(["job", "site"]), default="job")
def schema(kind: str) -> None:
    """Print the JSON Schema of job files or site profiles.

    Your editor can use it to complete and validate these files.
    """
    from lumitui.app.job.json_schema import described_schema
    from lumitui.app.job.spec import JobSpec
    from lumitui.app.runs import Site

    output.put(json.dumps(described_schema(Site if kind == "site" else JobSpec), indent=1))


SHELLS = {
    "bash": "echo 'eval \"$(lumitui completion bash)\"' >>~/.bashrc",
    "zsh": "echo 'eval \"$(lumitui completion zsh)\"' >>~/.zshrc",
    "fish": "lumitui completion fish >~/.config/fish/completions/lumitui.fish",
}
"""The command that enables completion, by shell."""


@click.command()
@click.argument("shell", required=False, type=click.Choice(list(SHELLS)))
@click.pass_context
def completion(ctx: click.Context, shell: str | None) -> None:
    """Print a shell's completion script.

    Without a shell, explains how to enable completion in each.
    """
    from click.shell_completion import get_completion_class

    if shell is None:
        output.put("\n".join(f"{name:4}  {command}" for name, command in SHELLS.items()))
        return
    shell_script = get_completion_class(shell)
    assert shell_script is not None
    output.put(shell_script(ctx.find_root().command, {}, "lumitui", "_LUMITUI_COMPLETE").source())
