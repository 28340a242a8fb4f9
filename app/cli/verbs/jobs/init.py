"""The verb that makes a first job file, or the profile of a cluster."""

from pathlib import Path
from typing import TypedDict, Unpack

import click

from lumitui.app.cli.confirmation import show_findings, without_later
from lumitui.app.cli.output import Reply
from lumitui.app.cli.session import (
    GivenPath,
    core,
    json_option,
    sites_beginning,
)


class _Beginning(TypedDict):
    """The options of `init` that fill in the example."""

    account: str | None
    name: str | None
    script: str | None
    trainer: str | None


class _Cluster(TypedDict):
    """The options of `init --host`, which describes a cluster."""

    host: str | None
    user: str | None
    port: int | None
    ssh_config: Path | None
    partition: str | None
    gpus: int | None


class _Options(_Beginning, _Cluster):
    """All options of `init` but its first two."""


@click.command()
@click.option(
    "--site",
    "site_name",
    metavar="SITE",
    required=True,
    shell_complete=sites_beginning,
    help="Where the job runs; with --host, the new site's name.",
)
@click.option(
    "--host", metavar="HOST", help="Write a profile of the cluster with this login node instead."
)
@click.option("--user", metavar="NAME", help="With --host: your name there.")
@click.option(
    "--port", metavar="N", type=click.IntRange(1, 65535), help="With --host: the port of its sshd."
)
@click.option(
    "--ssh-config", metavar="PATH", type=GivenPath(), help="With --host: another ssh_config file."
)
@click.option("--partition", metavar="NAME", help="With --host: the partition to describe.")
@click.option(
    "--gpus",
    metavar="N",
    type=click.IntRange(1, 64),
    help="With --host: the GPUs of a node, where Slurm shows none.",
)
@click.option("--account", metavar="NAME", help="The project that pays.")
@click.option("--name", metavar="NAME", help="The job's name; by default the example's.")
@click.option("--script", metavar="PATH", help="Your training script, in the job file's folder.")
@click.option("--trainer", metavar="NAME", help="A bundled trainer instead of a script.")
@click.option(
    "--output",
    "path",
    type=GivenPath(),
    default="job.yaml",
    show_default=True,
    help="The file to write.",
)
@json_option
@click.pass_obj
def init(reply: Reply, site_name: str, path: Path, **given: Unpack[_Options]) -> None:
    """Write a first job file, or the profile of a cluster.

    With --host it asks the cluster's Slurm what it is like, once, and writes a profile: what it
    found, what it guessed, and what is missing. It never overwrites a file.
    """
    from lumitui.app.cli.verbs.sites.init_host import describe, refuse_options
    from lumitui.app.job import examples
    from lumitui.app.job.spec import parse_job

    options = _Beginning(
        account=given["account"],
        name=given["name"],
        script=given["script"],
        trainer=given["trainer"],
    )
    if given["host"] is not None:
        for_jobs = ("account", "name", "script", "trainer", "path")
        refuse_options("is for job files, not for --host", *for_jobs)
        describe(reply, site_name, given["host"], given)
        return
    refuse_options("needs --host", "user", "port", "ssh_config", "partition", "gpus")
    with core() as runs:
        site = runs.sites.load(site_name)
        text = examples.text_for(site, examples.Beginning(**options))
        found = runs.preview(parse_job(text, str(path)), path.parent)
        found = without_later(found)
        show_findings(found)
        examples.write_new(path, text)
    data = {"path": str(path), "findings": found.findings}
    reply.give(data, f"Wrote {path}. Read it, then run: lumitui preview {path}")
