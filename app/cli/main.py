"""The command line: its verbs, each in a module imported on first use."""

import click

from lumitui.app.cli.process import Verbs, run_process
from lumitui.app.job.settings import version

VERBS = {
    "Jobs": {
        "new": "jobs.new_verb",
        "import": "jobs.import_verb",
        "preview": "jobs.submit_verbs",
        "fix": "jobs.fix",
        "export": "jobs.submit_verbs",
        "where": "jobs.where_verb",
        "try": "jobs.try_verb",
        "debug": "jobs.try_verb",
        "submit": "jobs.submit_verbs",
    },
    "Runs": {
        "status": "runs.status",
        "logs": "runs.one_run",
        "history": "runs.history_verb",
        "show": "runs.one_run",
        "why": "runs.why",
        "note": "runs.one_run",
        "diff": "runs.one_run",
        "cancel": "runs.one_run",
        "wait": "runs.inside_verbs",
        "shell": "runs.inside_verbs",
        "forward": "runs.inside_verbs",
        "fetch": "runs.one_run",
    },
    "Other sizes": {
        "resubmit": "scale.resubmit_verb",
        "scaling": "scale.scaling_verbs",
        "grid": "scale.scaling_verbs",
    },
    "Scripts and masks": {
        "lint": "scripts.lint_verb",
        "rules": "scripts.rules",
        "bind": "scripts.bind",
    },
    "Sites": {
        "site": "sites.site_group",
    },
    "This program": {
        "tour": "interface_verbs",
        "demo": "interface_verbs",
        "tui": "interface_verbs",
        "mcp": "interface_verbs",
        "docs": "pages",
        "schema": "interface_verbs",
        "completion": "interface_verbs",
    },
}
"""The verbs by group, in the order of use, and the module of `verbs` that defines each."""


def _show_version(ctx: click.Context, param: click.Parameter, flag: bool) -> None:
    if flag and not ctx.resilient_parsing:
        click.echo(f"lumitui {version()}")
        ctx.exit()


@click.group(
    cls=Verbs,
    groups=VERBS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
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

    Without a command, the TUI opens. RUN is a run's id or the start or end of one, a Slurm job id,
    the name of a job or a grid (its newest run), or `last`.

    \b
    Exit codes:
        0  done
        1  error
        2  job file, profile or usage
        3  connection
        4  the cluster refused
        5  the job failed
        6  outcome unknown
        7  the job can never start
       70  lumitui crashed
      124  the wait timed out
      130  interrupted
    """  # noqa: D301 - click needs the backspace itself, or it wraps the list
    if ctx.invoked_subcommand is not None:
        return 0
    from lumitui.app.cli.session import open_tui

    return open_tui(None)


def main() -> None:
    """Run this process's command line."""
    run_process(lumitui)


if __name__ == "__main__":
    main()
