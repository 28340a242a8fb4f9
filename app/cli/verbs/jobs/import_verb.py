"""The verb that turns any sbatch script into a job file."""

from pathlib import Path

import click

from lumitui.app.cli.output import Reply, say
from lumitui.app.cli.script_file import script_bytes
from lumitui.app.cli.session import (
    GivenPath,
    json_option,
    output_option,
    profiles,
    target_site_option,
)


@click.command("import")
@click.argument("script", metavar="SCRIPT", type=GivenPath())
@target_site_option
@output_option
@json_option
@click.pass_obj
def import_(reply: Reply, script: Path, site_name: str | None, path: Path) -> None:
    """Turn an sbatch script into a job file.

    Reports what it kept, derived, changed and lost. Never overwrites a file.
    """
    from lumitui.app.job.examples import write_new
    from lumitui.app.runs import import_lines, import_script, quote

    data = script_bytes(str(script))
    with profiles() as sites:
        imported = import_script(data, script, sites, site_name or "", path.parent)
    if imported.because:
        say(f"site: {imported.chosen}")
    report = imported.report
    write_new(path, imported.text)
    for line in import_lines(report):
        say(line)
    reply_data = {"path": str(path), "kept": report.kept, "derived": report.derived,
            "changed": report.changed, "lost": report.lost}  # fmt: skip
    advice = "Read what was lost, then run" if report.lost else "Next, run"
    reply.give(reply_data, f"Wrote {path}. {advice}: lumitui preview {quote(str(path))}")
