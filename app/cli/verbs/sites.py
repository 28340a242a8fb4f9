"""The verbs about a site: its facts, their schema, its check, its disk space, its cores."""

import json

import click

from lumitui.app.cli import tables
from lumitui.app.cli.output import Reply, say, warn
from lumitui.app.cli.session import (
    columns,
    core,
    json_option,
    own_settings,
    site_argument,
    sites_beginning,
)
from lumitui.remote.errors import LumiError


@click.command()
@click.argument("site_name", metavar="[SITE]", required=False, shell_complete=sites_beginning)
@json_option
@click.pass_obj
def sites(reply: Reply, site_name: str | None) -> None:
    """List the sites, or show all facts of one."""
    from lumitui.remote.site.sites import Sites

    folders = own_settings().profiles
    known = Sites(folders)
    if site_name is not None:
        site = known.load(site_name)
        reply.give(site, tables.site_page(site, known.path(site_name)))
        return
    found = [known.load(name) for name in known.names()]
    reply.give(found, tables.site_table(found, columns()))
    say(
        f"Put a profile of your own into {folders[0]}/NAME.yaml. With `extends: OTHER` it inherits "
        "the keys that it leaves out; `lumitui schema site` lists all keys."
    )


@click.command()
@site_argument
@click.option("--account", metavar="NAME", default="", help="The project to check.")
@json_option
@click.pass_obj
def doctor(reply: Reply, site_name: str, account: str) -> int:
    """Check a site's profile against the live cluster."""
    with core() as runs:
        checks = runs.doctor(site_name, account)
    failed = [check for check in checks if check.status == "failed"]
    reply.give(checks, tables.check_text(checks))
    if failed:
        raise LumiError(
            f"{len(failed)} of {len(checks)} checks failed.", "Do what stands below each."
        )
    return 0


@click.command()
@site_argument
@json_option
@click.pass_obj
def cluster(reply: Reply, site_name: str) -> None:
    """Show a site's nodes, your queue there, reservations and budget."""
    with core() as runs:
        answered = runs.clusters.ask(site_name)
    reply.give(answered, tables.overview_text(answered.overview, answered.at, columns()))


@click.command()
@site_argument
@click.option("--dry-run", "dry", is_flag=True, help="Only show what would be removed.")
@json_option
@click.pass_obj
def prune(reply: Reply, site_name: str, dry: bool) -> None:
    """Remove the code on a site that no unfinished run uses."""
    with core() as runs:
        freed = runs.prune(site_name, dry=dry, warn=warn)
    reply.give(freed, tables.pruned_text(freed))
    if not freed:
        say("There is nothing to remove.")


@click.command()
@site_argument
@click.option("--ranks", metavar="N", type=int, help="Ranks per node; by default one per GPU.")
@json_option
@click.pass_obj
def bind(reply: Reply, site_name: str, ranks: int | None) -> None:
    """Draw which cores each rank of a node gets."""
    from lumitui.app.compose.binding import rank_bindings
    from lumitui.app.compose.draft.node_map import bind_text
    from lumitui.remote.site.sites import Sites

    site = Sites(own_settings().profiles).load(site_name)
    count = site.node.gpus if ranks is None else ranks
    reply.give(rank_bindings(site.node, count), bind_text(site, count))


@click.command()
@click.argument("what", type=click.Choice(["job", "site"]), default="job")
def schema(what: str) -> None:
    """Print the JSON Schema of job files, or of site profiles.

    Your editor can use it to complete and check these files.
    """
    from lumitui.app.job.spec import JobSpec
    from lumitui.remote.site.profile import Site

    click.echo(json.dumps((JobSpec if what == "job" else Site).model_json_schema(), indent=1))
