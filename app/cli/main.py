"""The command line: its verbs, each in a module that is imported when the verb is used."""

import click

from lumitui.app.cli.process import Verbs, run_process
from lumitui.app.settings import version

VERBS = {
    "init": "jobs",
    "new": "new",
    "sites": "sites",
    "doctor": "doctor",
    "cluster": "sites",
    "containers": "environments",
    "envs": "environments",
    "schema": "sites",
    "lint": "lint",
    "preview": "jobs",
    "fix": "fix",
    "import": "adopt",
    "export": "jobs",
    "submit": "jobs",
    "status": "status",
    "logs": "history",
    "history": "history",
    "show": "history",
    "why": "why",
    "note": "history",
    "diff": "history",
    "scaling": "scaling",
    "grid": "scaling",
    "resubmit": "resubmit",
    "cancel": "history",
    "fetch": "history",
    "board": "programs",
    "prune": "sites",
    "stage": "sites",
    "bind": "bind",
    "rules": "rules",
    "demo": "programs",
    "tui": "programs",
    "web": "programs",
    "completion": "programs",
}
"""The verbs in the order of use, and the module of `verbs` that has each as a function."""


def _show_version(ctx: click.Context, param: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        click.echo(f"lumitui {version()}")
        ctx.exit()


@click.group(cls=Verbs, modules=VERBS, invoke_without_command=True)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
@click.pass_context
def lumitui(ctx: click.Context) -> int:
    """Compose, prove and scale multi-GPU training jobs on Slurm supercomputers.

    Without a verb, the terminal interface opens. RUN is the beginning of a run's id, or `last`
    for the newest run.

    \b
    Exit codes:
        0  done
        1  error
        2  job file, profile or usage
        3  connection
        4  the cluster refused
        5  the job failed
        6  outcome unknown
      124  the wait timed out
      130  interrupted
    """  # noqa: D301 - click needs the backspace itself, or it wraps the list
    if ctx.invoked_subcommand is not None:
        return 0
    from lumitui.app.cli.session import open_tui

    return open_tui(None)


def main() -> None:
    """Run the command line of this process."""
    run_process(lumitui)


if __name__ == "__main__":
    main()
