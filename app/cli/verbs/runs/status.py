"""The verb that queries the sites."""

import time

import click

from lumitui.app.cli.output import Reply, run_data, say, warn
from lumitui.app.cli.session import (
    columns,
    core,
    json_option,
    known_site,
    refuse_silence,
    runs_site_option,
)
from lumitui.app.cli.views import tables


@click.command()
@runs_site_option
@json_option
@click.pass_obj
def status(reply: Reply, site_name: str | None) -> None:
    """Query the sites for unfinished runs, and list them."""
    with core() as runs:
        known_site(runs, site_name)
        site_of = {run.id: run.site for run in runs.history.unfinished(site_name)}
        began = time.time()
        news = runs.refresh(site_name)
        listed = [runs.history.get(run_id) for run_id in site_of]
        proofs = [(run.id, runs.proof(run)) for run in listed]
        if runs.history.series.offered():
            from lumitui.app.cli.series_verbs import note_unsent

            note_unsent(runs)
    warnings = [
        *news.warnings,
        *(f"{key}: {p.sentence}" for key, p in proofs if p.kind == "differs"),
        *(
            f"{key}: {p.preflight.sentence}"
            for key, p in proofs
            if p.preflight and p.preflight.state == "bad"
        ),
    ]
    for warning in warnings:
        warn(warning)
    # A site may answer without the states of its jobs, because its scheduler is down.
    stale = {run.id for run in listed if run.site in news.failed or run.unreported_since(began)}
    rows = [run_data(run) | {"stale": run.id in stale} for run in listed]
    text = tables.run_table(listed, time.time(), columns(), stale) if listed else ""
    reply.give({"runs": rows, "warnings": warnings}, text)
    if not listed:
        say("There are no unfinished runs. `lumitui history` lists all runs.")
    refuse_silence(set(site_of.values()), news.failed)
