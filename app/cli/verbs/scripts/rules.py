"""`lumitui rules`: lists the adviser's rules, and explains each."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from lumitui.app.cli.output import Reply, say
from lumitui.app.cli.session import columns, json_option, profiles, site_option

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from lumitui.app.runs import Site, Topic


def _rules_beginning(
    ctx: click.Context, param: click.Parameter, text: str
) -> "list[CompletionItem]":
    from click.shell_completion import CompletionItem

    from lumitui.app.runs.rulebook import topics

    return [CompletionItem(one.id, help=one.title) for one in topics() if one.id.startswith(text)]


@click.command()
@click.argument("name", metavar="[ID]", required=False, shell_complete=_rules_beginning)
@site_option("Include the rules of this site.")
@json_option
@click.pass_obj
def rules(reply: Reply, name: str | None, site_name: str | None) -> None:
    """List the adviser's rules, or explain one.

    An explanation describes what happens to such a job, with an example if there is one, and cites
    the source.
    """
    from lumitui.app.runs.rulebook import examples, rule_text, topic, topics

    with profiles() as known:
        sites: list[Site] = [known.load(site_name)] if site_name else []
        if name is not None:
            chosen = topic(name, sites or known.valid())
            example = examples().get(chosen.id)
            reply.give({"rule": chosen, "example": example}, rule_text(chosen, columns()))
            return
    every = topics(sites)
    reply.give(every, listed(every, columns()))
    more = "" if site_name else " `--site SITE` adds that site's rules."
    say(f"{len(every)} rules.{more} `lumitui rules ID` explains one.")


def listed(every: "Sequence[Topic]", width: int) -> str:
    """Return a line for each rule, by subject."""
    from lumitui.app.runs.rulebook import HEADINGS

    wide = max((len(one.id) for one in every), default=0)
    lines: list[str] = []
    for subject, heading in HEADINGS.items():
        own = sorted((one for one in every if one.subject == subject), key=lambda one: one.id)
        lines += ["", heading] if own else []
        for one in own:
            line = f"  {one.id:<{wide}}  {one.severity:<7}  {one.title}"
            lines.append(line if len(line) <= width else f"{line[: width - 1].rstrip()}…")
    return "\n".join(lines).strip("\n")
