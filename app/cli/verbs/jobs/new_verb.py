"""The verb that writes a job file: from an example, for a script or for a trainer."""

from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TypedDict, Unpack

import click

from lumitui.app.cli.confirmation import show_findings, without_later
from lumitui.app.cli.output import Reply, say
from lumitui.app.cli.session import core, json_option, output_option, site_option
from lumitui.app.runs import InputError, quote


class _Beginning(TypedDict):
    """The options that fill in the example."""

    account: str | None
    name: str | None
    script: str | None
    trainer: str | None
    example: str | None
    launcher: str | None
    gpus: int | None
    image: str | None


@click.command()
@click.option("--list", "listing", is_flag=True, help="List the examples, one per line.")
@site_option("Target site.", default="laptop", show_default=True)
@click.option("--script", metavar="PATH", help="Your training script, in the job file's folder.")
@click.option("--trainer", metavar="NAME", help="A bundled trainer instead of a script.")
@click.option("--example", metavar="NAME", help="Example to start from. [default: ddp]")
@click.option("--account", metavar="NAME", help="Project to bill.")
@click.option("--name", metavar="NAME", help="Job name. [default: the script's or the example's]")
@click.option(
    "--run-file",
    is_flag=True,
    help=(
        "Also write lumitui_run.py, which lets your script save before the time limit and report "
        "metrics."
    ),
)
@click.option("--launcher", metavar="NAME", help="Launcher. [default: the example's]")
@click.option(
    "--gpus",
    metavar="N",
    type=click.IntRange(min=1),
    help="Total GPUs: part of a node, or whole nodes.",
)
@click.option(
    "--image", metavar="PATH", help="Container image on the site. [default: the profile's]"
)
@output_option
@json_option
@click.pass_obj
def new(
    reply: Reply,
    listing: bool,
    site_name: str,
    path: Path,
    run_file: bool,
    **options: Unpack[_Beginning],
) -> None:
    """Write a job file and the files it needs.

    Starts from your script (which need not exist yet), a bundled trainer or an example. Without
    --account, writes your own profile's account or a placeholder. Never overwrites a file.
    """
    if listing:
        _list(reply)
        return
    from lumitui.app.job import examples
    from lumitui.app.runs.guide import new_job

    beginning = examples.Beginning(**options)
    files = examples.chosen(beginning).files
    if run_file and examples.run_file() not in files:
        files += (examples.run_file(),)
    with core() as runs:
        site = runs.sites.load(site_name)
        text = new_job(site, beginning, path.parent)
        examples.write_all(path, text, files)
        try:
            every = [without_later(one) for one in runs.previews(path)]
            show_findings(*every)
        except BaseException as error:
            for name in (path.name, *(name for name, _ in files)):
                (path.parent / name).unlink(missing_ok=True)
            # The examples name no image: the site's profile has no default one.
            if (
                isinstance(error, InputError)
                and error.field == "container.image"
                and not beginning.image
            ):
                error.hint = "Pass the image's path on the site with --image PATH."
            raise
    beside = [str(path.parent / name) for name, _ in files]
    for name in beside:
        say(f"Wrote {name}.")
    data = {"path": str(path), "files": beside, "findings": every[0].findings}
    reply.give(data, f"Wrote {path}. Read it, then run: lumitui preview {quote(str(path))}")


def _list(reply: Reply) -> None:
    from lumitui.app.job.examples import examples

    every = list(examples().values())
    lines = []
    for group, members in groupby(every, attrgetter("group")):
        lines += [group, *(f"  {item.name:<20}{item.summary}" for item in members), ""]
    lines.append("To write one, run: lumitui new --example NAME --site SITE")
    rows = [{"name": item.name, "group": item.group, "summary": item.summary} for item in every]
    reply.give(rows, "\n".join(lines))
