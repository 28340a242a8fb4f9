"""The verb that checks a site's profile against its cluster, and measures one of its nodes."""

from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from lumitui.app.cli.confirmation import (
    NOTHING_SENT,
    billing_notes,
    confirm,
    refuse_errors,
    show_findings,
)
from lumitui.app.cli.output import Reply, say, warn
from lumitui.app.cli.send_progress import show_step
from lumitui.app.cli.session import (
    GivenPath,
    account_option,
    core,
    json_option,
    own_settings,
    refuse_options,
    sites_beginning,
    yes_option,
)
from lumitui.app.cli.views import tables
from lumitui.app.explain import words
from lumitui.app.runs import InputError, LumiError, spell_out

if TYPE_CHECKING:
    from lumitui.app.runs import Looked, Run, Runs


_PROBE = ("partition", "run", "write", "yes")


class _Probe(TypedDict):
    """The options of a probe."""

    partition: str | None
    run: str | None
    write: bool
    yes: bool


@click.command()
@click.argument("site_name", metavar="[SITE]", required=False, shell_complete=sites_beginning)
@click.option(
    "--file", "profile", metavar="FILE", type=GivenPath(), help="Check this profile file."
)
@account_option
@click.option("--probe", is_flag=True, help="Measure one node with a job of at most five minutes.")
@click.option("--partition", metavar="NAME", help="With --probe: partition of the node.")
@click.option("--run", metavar="RUN", help="With --probe: read the report of an earlier probe.")
@click.option("--write", is_flag=True, help="With --probe: write the result to your profile.")
@yes_option
@json_option
@click.pass_obj
def check(
    reply: Reply,
    site_name: str | None,
    profile: Path | None,
    account: str,
    probe: bool,
    **options: Unpack[_Probe],
) -> int:
    """Compare a profile with its cluster, or check a profile file.

    Exits with 1 if a check fails or gives a warning. With --file, contacts no cluster, and exits
    with 2 for errors.

    With --probe, shows the price and, after you confirm, measures the cores, GPUs, disks and
    network of one node. Prints the result as a change to the profile.
    """
    if profile is not None:
        if site_name is not None:
            raise InputError("--file and SITE cannot be combined.", "Omit one of them.")
        refuse_options("queries a cluster, but --file does not", "account", "probe", *_PROBE)
        return _of_file(reply, profile)
    if site_name is None:
        raise InputError("There is nothing to check.", "Pass a SITE, or a profile with --file.")
    if probe:
        _probe(reply, site_name, account, options)
        return 0
    refuse_options("needs --probe", *_PROBE)
    with core() as runs:
        checks = runs.doctor(site_name, account)
    failed = [one for one in checks if one.severity == "error"]
    reply.give(checks, tables.check_text(checks))
    if failed:
        raise LumiError(f"{len(failed)} of {len(checks)} checks failed.", "See the fix under each.")
    return int(any(one.severity == "warning" for one in checks))


def _of_file(reply: Reply, profile: Path) -> int:
    from lumitui.app.runs import profile_remarks

    remarks = profile_remarks(profile, own_settings().profiles)
    rows = (f"{profile}:{one.at.line}: {one.severity}: {one.message}" for one in remarks)
    reply.give(remarks, "\n".join(map(spell_out, rows)))
    codes = {"error": 2, "warning": 1, "note": 0}
    return max((codes[one.severity] for one in remarks), default=0)


def _probe(reply: Reply, site_name: str, account: str, options: _Probe) -> None:
    with core() as runs:
        if options["run"]:
            run = runs.history.get(options["run"])
            if run.site != site_name:
                raise InputError(
                    f"{run.id} ran at {run.site}, not at {site_name}.",
                    f"Run `lumitui site check {run.site} --probe --run {run.id}`.",
                )
        else:
            run = _sent(runs, site_name, account, options)
            again = f"lumitui site check {site_name} --probe --run {run.id}"
            say(f"Job {run.job_id}. If you stop waiting, continue with: {again}")
        if not run.state.is_final:
            run = runs.wait(run.id, warn=warn)
        probe = runs.surveys.looked(run)
        _show(reply, run, probe)
        if not probe.edited.diff:
            say(f"{probe.measured.host} matches the profile of {site_name}.")
        elif options["write"]:
            path = runs.surveys.write(probe)
            say(f"Wrote {path}. Next, run: lumitui new --site {site_name} --script YOURS.py")
        else:
            again = f"lumitui site check {site_name} --probe --run {run.id} --write"
            say(f"To write it to your profile: {again}")


def _sent(runs: "Runs", site_name: str, account: str, options: _Probe) -> "Run":
    """Return the job that measures a node: an unfinished one, or a new one if the user agrees."""
    earlier = runs.surveys.under_way(site_name)
    if earlier is not None:
        say(f"{earlier.id} is {earlier.state}, so lumitui sends no second job.")
        return earlier
    preview = runs.surveys.preview(site_name, partition=options["partition"] or "", account=account)
    show_findings(preview)
    refuse_errors(preview)
    launch = preview.launch
    for note in billing_notes([preview]):
        say(note)
    confirm(
        f"Send a job to {site_name} that measures one node of {launch.spec.partition} "
        f"({words.layout_size(launch.layout)}) for at most {launch.spec.time}; "
        f"{words.price_sentence(launch.price)}?",
        yes=options["yes"],
        otherwise=NOTHING_SENT,
    )
    return runs.send(preview, report=show_step)


def _show(reply: Reply, run: "Run", probe: "Looked") -> None:
    measured, edited = probe.measured, probe.edited
    for note in measured.notes:
        say(note)
    data = {
        "run": run.id,
        "host": measured.host,
        "changes": {".".join(one.place): one.value for one in measured.changes},
        "notes": measured.notes,
        "path": str(Path(edited.path)),
        "diff": edited.diff,
    }
    reply.give(data, edited.diff)
