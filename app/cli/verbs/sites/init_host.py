"""`lumitui init --host`: a profile of a cluster that nobody has described."""

from collections.abc import Mapping
from typing import Any

import click
from click.core import ParameterSource

from lumitui.app.cli.output import Reply, say
from lumitui.app.cli.session import core
from lumitui.app.explain import words
from lumitui.remote.site.errors import InputError


def describe(reply: Reply, name: str, host: str, given: Mapping[str, Any]) -> None:
    """Ask the cluster at `host` and write the profile `name`; `given` are the verb's options."""
    from lumitui.remote.survey.profile.proposal import Host

    config = given["ssh_config"]
    place = Host(
        login=host.partition("@")[2] or host,
        user=given["user"] or (host.partition("@")[0] if "@" in host else None),
        port=given["port"],
        ssh_config=str(config.resolve()) if config else None,
    )
    with core() as runs:
        found = runs.surveys.describe(
            name, place, partition=given["partition"] or "", gpus=given["gpus"] or 0
        )
    node, queues = found.site.node, found.site.partitions
    say(
        f"{found.site.title}: {node.gpus} x {node.gpu} and {node.cores} cores per node; "
        f"{words.count(len(queues), 'partition')}: {', '.join(queues)}."
    )
    for one in found.left_out:
        say(f"left out: {one}")
    if found.guessed:
        say(f"guessed (read these lines): {', '.join(found.guessed)}")
    data = {"path": str(found.path), "guessed": found.guessed, "left_out": found.left_out}
    reply.give(data, f"Wrote {found.path}. Read it, then run: lumitui doctor {name} --probe")


def refuse_options(why: str, *names: str) -> None:
    """Raise where one of the options `names` was given, which would have no effect: `why`.

    Raises:
        InputError: one was; the message names it.
    """
    ctx = click.get_current_context()
    flags = {param.name: param.opts[0] for param in ctx.command.params}
    for name in names:
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise InputError(f"{flags[name]} {why}.", "Leave out one or the other.")
