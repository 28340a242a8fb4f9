"""The verbs about a site: its profile, its state, its disk space."""

import click

from lumitui.app.cli.confirmation import confirm
from lumitui.app.cli.output import Reply, say, warn
from lumitui.app.cli.session import (
    account_option,
    columns,
    core,
    dry_option,
    json_option,
    own_settings,
    profiles,
    site_argument,
    sites_beginning,
    yes_option,
)
from lumitui.app.cli.views import tables
from lumitui.app.runs import InputError


@click.command()
@click.argument("site_name", metavar="[SITE]", required=False, shell_complete=sites_beginning)
@json_option
@click.pass_obj
def show(reply: Reply, site_name: str | None) -> None:
    """List the sites, or show one as a page.

    --json prints the whole profile.
    """
    with profiles() as known:
        if site_name is not None:
            site = known.load(site_name)
            reply.give(site, tables.site_page(site, known.path(site_name), columns()))
            return
        every = known.valid()
        reply.give(every, tables.site_table(every, columns()))
    say(
        "`lumitui site show NAME` shows one site's limits and facts. Put your own profiles into "
        f"{own_settings().profiles[0]}/NAME.yaml; with `extends: OTHER` a profile inherits the "
        "keys that it omits. `lumitui schema site` lists all keys."
    )


@click.command()
@site_argument
@json_option
@click.pass_obj
def live(reply: Reply, site_name: str) -> None:
    """Show a site's nodes, your jobs, reservations and budget."""
    with core() as runs:
        answer = runs.clusters.ask(site_name)
    reply.give(answer, tables.overview_text(answer.overview, answer.at, columns()))


@click.command()
@site_argument
@dry_option
@yes_option
@json_option
@click.pass_obj
def prune(reply: Reply, site_name: str, dry: bool, yes: bool) -> None:
    """Remove from a site the code that no unfinished run uses."""
    with core() as runs:
        freed = runs.prune(site_name, dry=dry or not yes, warn=warn)
        if not (dry or yes) and any(one.snapshots for one in freed.values()):
            say(tables.pruned_text(freed, dry=True))
            confirm("Remove this code?", yes=yes, otherwise="Nothing was removed.")
            freed = runs.prune(site_name)  # its warnings are shown
    reply.give(freed, tables.pruned_text(freed, dry=dry))
    if not freed:
        say("There is nothing to remove.")
        return
    say(
        "Kept: each project's newest code, which speeds up the next send, the code of "
        "unfinished runs, and each run's own copy (`code` in its folder). To free an ended "
        "run's copy, remove it manually."
    )


@click.command()
@site_argument
@account_option
@click.option(
    "--remove",
    "removed",
    metavar="NAME",
    multiple=True,
    help="Remove the data with this name or id; repeatable.",
)
@click.option("--prune", "pruned", is_flag=True, help="Remove data that no unfinished run needs.")
@dry_option
@json_option
@click.pass_obj
def data(
    reply: Reply, site_name: str, account: str, removed: tuple[str, ...], pruned: bool, dry: bool
) -> None:
    """List or remove the data that `stage:` uploaded to a site."""
    if removed and pruned:
        raise InputError("--remove and --prune cannot be combined.", "Choose one of them.")
    with core() as runs:
        if removed or pruned:
            names = list(removed) if removed else None
            freed = runs.stocks.remove(site_name, names, account, dry=dry)
            reply.give(freed, tables.removed_text(freed, dry=dry))
            return
        stocks = runs.stocks.list(site_name, account)
    reply.give(stocks, tables.stock_text(stocks, columns()))
    if not any(each.items or each.loose.files for each in stocks):
        say("Nothing is staged at this site.")
