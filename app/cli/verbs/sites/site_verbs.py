"""The verbs about a site: its profile, its state, its disk space."""

from functools import partial

import click

from lumitui.app.cli.confirmation import remove_agreed
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
        "`lumitui site show NAME` shows one site's limits and facts. Put your own profiles in "
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
        remove_agreed(
            reply, "Remove this code?", partial(runs.prune, site_name, warn=warn),
            tables.pruned_text, lambda freed: any(one.files for one in freed.values()),
            dry=dry, yes=yes,
        )  # fmt: skip
    say(
        "Kept: each project's newest code (it speeds up the next send), the code of "
        "unfinished runs, and each run's own copy (`code` in its folder). To free an ended "
        "run's copy, remove it manually."
    )


@click.command()
@site_argument
@account_option
@click.option(
    "--remove",
    "names",
    metavar="NAME",
    multiple=True,
    help="Remove the data with this name or id; repeatable.",
)
@click.option("--prune", is_flag=True, help="Remove data that no unfinished run needs.")
@dry_option
@yes_option
@json_option
@click.pass_obj
def data(
    reply: Reply, site_name: str, account: str, names: tuple[str, ...], prune: bool,
    dry: bool, yes: bool,
) -> None:  # fmt: skip
    """List or remove the data that `stage:` uploaded to a site."""
    if names and prune:
        raise InputError("--remove and --prune cannot be combined.", "Choose one of them.")
    with core() as runs:
        if names or prune:
            remove = partial(runs.stocks.remove, site_name, names or None, account)
            remove_agreed(
                reply, "Remove this data?", remove, tables.removed_text,
                lambda freed: any(one.ids or one.loose.files for one in freed), dry=dry, yes=yes,
            )  # fmt: skip
            return
        stocks = runs.stocks.list(site_name, account)
    reply.give(stocks, tables.stock_text(stocks, columns()))
    if not any(each.items or each.loose.files for each in stocks):
        say("Nothing is staged at this site.")
