"""`lumitui site add`: writes the profile of a new cluster."""

import textwrap
from functools import partial
from pathlib import Path

import click

from lumitui.app.cli.output import Reply, say
from lumitui.app.cli.session import GivenPath, columns, core, json_option, own_settings
from lumitui.app.explain import words


@click.command()
@click.argument("site_name", metavar="NAME")
@click.option("--host", metavar="HOST", help="Login node of the cluster. [default: NAME]")
@click.option("--user", metavar="NAME", help="Your user name on the cluster.")
@click.option("--port", metavar="N", type=click.IntRange(1, 65535), help="SSH port.")
@click.option(
    "--ssh-config", metavar="PATH", type=GivenPath(), help="Read this ssh_config file instead."
)
@click.option("--partition", metavar="NAME", default="", help="Partition to describe.")
@click.option(
    "--gpus",
    metavar="N",
    type=click.IntRange(1, 64),
    help="GPUs per node, if Slurm shows none.",
)
@json_option
@click.pass_obj
def add(
    reply: Reply,
    site_name: str,
    host: str | None,
    user: str | None,
    port: int | None,
    ssh_config: Path | None,
    partition: str,
    gpus: int | None,
) -> None:
    """Write the profile of a new cluster.

    Queries the cluster's Slurm once, and marks what it guessed and what is missing. Never
    overwrites a file.
    """
    from lumitui.app.runs import HostAddress, InputError

    if site_name.endswith((".yaml", ".yml")):
        raise InputError(
            f"{site_name} is a file, but `site add` writes the profile of a new cluster.",
            f"If it is a profile that you were given, copy it to {own_settings().profiles[0]}/.",
        )
    host = host or site_name  # an alias of ~/.ssh/config
    place = HostAddress(
        login=host.partition("@")[2] or host,
        user=user or (host.partition("@")[0] if "@" in host else None),
        port=port,
        ssh_config=str(ssh_config.resolve()) if ssh_config else None,
    )
    with core() as runs:
        written = runs.surveys.describe(site_name, place, partition=partition, gpus=gpus or 0)
    node, queues = written.site.node, written.site.partitions
    rows = [
        f"{written.site.title}: {node.gpus} x {node.gpu} and {node.cores} cores per node; "
        f"{words.count(len(queues), 'partition')}: {', '.join(queues)}.",
        *(f"left out: {one}" for one in written.left_out),
        *filter(None, [written.image]),
    ]
    if written.guessed:
        rows.append(f"guessed (check these lines): {', '.join(written.guessed)}")
    wrap = partial(textwrap.fill, width=columns(), subsequent_indent="  ",
                   break_long_words=False, break_on_hyphens=False)  # fmt: skip
    for row in rows:
        say(wrap(row))
    data = {"path": str(written.path), "guessed": written.guessed, "left_out": written.left_out}
    done = f"Wrote {written.path}. Read it, then run: lumitui site check {site_name} --probe"
    reply.give(data, wrap(done))
