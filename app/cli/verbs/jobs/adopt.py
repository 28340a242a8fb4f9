"""The verb that makes a job file of any sbatch script."""

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lumitui.app.cli.output import Reply, say
from lumitui.app.cli.session import GivenPath, core, json_option, sites_beginning
from lumitui.remote.errors import InputError

if TYPE_CHECKING:
    from lumitui.remote.site.profile import Site
    from lumitui.remote.site.sites import Sites

_MOST_BYTES = 4_000_000
"""Slurm takes no larger script (`max_script_size`)."""


@click.command("import")
@click.argument("script", metavar="SCRIPT", type=GivenPath())
@click.option(
    "--site",
    "site_name",
    metavar="SITE",
    shell_complete=sites_beginning,
    help="The site that the script is for; by default the one that its names tell.",
)
@click.option(
    "--output",
    "-o",
    "path",
    type=GivenPath(),
    default="job.yaml",
    show_default=True,
    help="The file to write.",
)
@json_option
@click.pass_obj
def import_(reply: Reply, script: Path, site_name: str | None, path: Path) -> None:
    """Make a job file of an sbatch script.

    It says what was kept, what lumitui works out by itself, and what was lost. It never overwrites
    a file.
    """
    from lumitui.app.adopt.report import lines_of, report_of
    from lumitui.app.adopt.text import text_of
    from lumitui.app.job.examples.new_files import write_new
    from lumitui.app.lint.bash import read_script

    text = _read(script)
    with core() as runs:
        site = runs.sites.load(site_name) if site_name else _guessed(text, runs.sites)
    before = read_script(text, site=site, folder=str(script.resolve().parent))
    report = report_of(before, site, script.stem)
    write_new(path, text_of(report, script.name))
    for line in lines_of(report):
        say(line)
    data = {"path": str(path), "kept": report.kept, "derived": report.derived,
            "changed": report.changed, "lost": report.lost}  # fmt: skip
    read = "Read what was lost, then run" if report.lost else "Next, run"
    reply.give(data, f"Wrote {path}. {read}: lumitui preview {path}")


def _guessed(text: str, sites: "Sites") -> "Site":
    """Return the site that a script is for, and say what told it.

    Raises:
        InputError: nothing tells it.
    """
    from lumitui.app.lint.guess import guess_site

    found = guess_site(text, [sites.load(name) for name in sites.names()], date.today())
    if found.site is None:
        others = " or ".join(found.candidates[:4])
        raise InputError(
            f"Nothing in the script tells its site{f': it may be {others}' if others else ''}.",
            "Name it with --site.",
        )
    say(f"site: {found.site.name}, by {found.because}")
    return found.site


def _read(script: Path) -> str:
    """Return the script's text.

    Raises:
        InputError: there is no such file, or it is no script.
    """
    from lumitui.remote.site.reading.plain_file import read_plain

    try:
        text = read_plain(script, _MOST_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError) as error:
        words = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{script} cannot be read: {words}.", "Check the path.") from error
    if not text.strip():
        raise InputError(f"{script} is empty.", "Name a job script.")
    return text
