"""The group `lumitui site`."""

import click

from lumitui.app.cli.process import Verbs

VERBS = {
    "Profiles": {
        "show": "sites.site_verbs",
        "add": "sites.add_verb",
        "check": "sites.check_verb",
    },
    "Nodes and storage": {
        "live": "sites.site_verbs",
        "images": "sites.environment_verbs",
        "venvs": "sites.environment_verbs",
        "data": "sites.site_verbs",
        "prune": "sites.site_verbs",
    },
}


@click.group(cls=Verbs, groups=VERBS, no_args_is_help=False)
def site() -> None:
    """Show, add, check and clean up sites."""
