"""The verbs about a site's container images and virtual environments."""

from functools import partial

import click

from lumitui.app.cli.confirmation import remove_agreed
from lumitui.app.cli.output import Reply, say
from lumitui.app.cli.session import (
    account_option,
    columns,
    core,
    dry_option,
    json_option,
    site_argument,
    yes_option,
)
from lumitui.app.cli.views import environment_tables as tables
from lumitui.app.explain import words
from lumitui.app.runs import InputError


@click.command()
@site_argument
@click.option("--with", "package", metavar="PACKAGE", default="", help="Only images with PACKAGE.")
@click.option("--refresh", is_flag=True, help="Query the site again.")
@json_option
@click.pass_obj
def images(reply: Reply, site_name: str, package: str, refresh: bool) -> None:
    """List a site's container images and their packages.

    Queries a site once, and keeps the answer on your laptop.
    """
    from lumitui.app.runs import images_with_package

    with core() as runs:
        listing = runs.environments.images(site_name, refresh=refresh)
        site = runs.sites.load(site_name)
    shown, unknown = images_with_package(listing.images, package)
    data = {"at": listing.at, "images": shown, "unknown": unknown}
    reply.give(data, tables.image_table(shown, site, package, columns()))
    for line in tables.image_notes(shown, unknown, package, site):
        say(line)
    say(f"As of {words.clock(listing.at)}; `--refresh` queries the site again.")


@click.command()
@site_argument
@account_option
@click.option("--prune", is_flag=True, help="Remove unused environments.")
@click.option(
    "--unused", "days", metavar="DAYS", type=click.IntRange(0, 10_000), default=30,
    show_default=True, help="With --prune: days without use.",
)  # fmt: skip
@click.option("--remove", "names", metavar="NAME", multiple=True, help="Remove NAME; repeatable.")
@dry_option
@yes_option
@json_option
@click.pass_obj
def venvs(
    reply: Reply, site_name: str, account: str, prune: bool, days: int, names: tuple[str, ...],
    dry: bool, yes: bool,
) -> None:  # fmt: skip
    """List or remove the environments that `venv:` built on a site.

    Keeps those of unfinished runs. lumitui rebuilds a removed environment when a run needs it.
    """
    if prune and names:
        raise InputError("--prune and --remove cannot be combined.", "Choose one of them.")
    with core() as runs:
        if not prune and not names:
            listed = runs.environments.venvs(site_name, account)
            reply.give(listed, tables.venv_table(listed, columns()))
            if not any(listed.values()):
                say("There are no environments. `venv:` in a job file builds one.")
            return
        remove = partial(
            runs.environments.remove, site_name, names, account=account, unused_days=days
        )
        remove_agreed(
            reply, "Remove these environments?", remove, tables.removed_text,
            lambda freed: any(one.names for one in freed.values()), dry=dry, yes=yes,
        )  # fmt: skip
