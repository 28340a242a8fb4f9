"""The verb that makes a job file of any sbatch script."""

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lumitui.app.cli.output import Reply, say
from lumitui.app.cli.script_file import script_bytes
from lumitui.app.cli.session import (
    GivenPath,
    core,
    json_option,
    output_option,
    target_site_option,
)
from lumitui.app.runs import InputError

if TYPE_CHECKING:
    from lumitui.app.runs import Site, Sites


@click.command("import")
@click.argument("script", metavar="SCRIPT", type=GivenPath())
@target_site_option
@output_option
@json_option
@click.pass_obj
def import_(reply: Reply, script: Path, site_name: str | None, path: Path) -> None:
    """Turn an sbatch script into a job file.

    It reports what it kept, derived, changed and lost, and never overwrites a file.
    """
    from lumitui.app.job.examples.new_files import write_new
    from lumitui.app.runs import ImportNote, import_lines, import_report, job_file_text, read_script

    text, odd = _read(script)
    with core() as runs:
        site = runs.sites.load(site_name) if site_name else _guessed(text, runs.sites)
    before = read_script(text, site=site, folder=str(script.resolve().parent))
    report = import_report(before, site, script.stem)
    if odd:
        lines = f"characters of line{'s' * (len(odd) > 1)} {', '.join(map(str, odd))}"
        note = ImportNote(lines, "Latin-1 → UTF-8, also in arguments and variables")
        report = replace(report, changed=(*report.changed, note))
    write_new(path, job_file_text(report, script.name))
    for line in import_lines(report):
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
    from lumitui.app.runs import guess_site

    every = [sites.load(name) for name in sites.names()]
    guess = guess_site(text, every, date.today(), sites.added())
    if guess.site is None:
        others = " or ".join(guess.candidates[:4])
        more = f": it may be {others}" if others else ""
        raise InputError(
            f"Cannot tell which site this script is for{more}.", "Name it with --site."
        )
    say(f"site: {guess.site.name}, by {guess.because}")
    return guess.site


def _read(script: Path) -> tuple[str, tuple[int, ...]]:
    """Return the script's text, and its lines in which Latin-1 became UTF-8, as a job file is.

    Raises:
        InputError: there is no such file, or it is not a script.
    """
    data = script_bytes(str(script))
    if not data.strip():
        raise InputError(f"{script} is empty.", "Name a job script.")
    try:
        return data.decode(), ()
    except UnicodeDecodeError:
        odd = [n for n, line in enumerate(data.split(b"\n"), 1) if not _is_utf8(line)]
        return data.decode("latin-1"), tuple(odd)


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
