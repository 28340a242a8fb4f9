"""The verb that lists runs, checks and moves the history file, and rebuilds lost runs."""

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from lumitui.app.cli.output import Reply, run_data, say, warn
from lumitui.app.cli.send_progress import show_step
from lumitui.app.cli.session import (
    MOST,
    GivenPath,
    columns,
    core,
    core_of,
    json_option,
    known_site,
    of_option,
    runs_site_option,
    sites_beginning,
)
from lumitui.app.cli.views import tables
from lumitui.app.explain import row_words, words
from lumitui.app.runs import HistoryError, InputError, State

if TYPE_CHECKING:
    from lumitui.app.runs import Runs


class _Filters(TypedDict):
    """The options of `history` that choose the runs to list."""

    limit: int
    site_name: str | None
    filter_text: str
    sort: str


@click.command()
@click.option("--limit", metavar="N", type=click.IntRange(min=1, max=MOST), default=50,
              show_default=True, help="List at most N runs.")  # fmt: skip
@runs_site_option
@of_option
@click.option("--filter", "filter_text", metavar="FILTER", default="",
              help="Only runs that match FILTER, such as 'failed site:lumi nodes>=4 2x8 age<2d "
              "idle:>30% #best'. `!failed` matches all others.")  # fmt: skip
@click.option("--sort", type=click.Choice(("newest", "state", "name", "nodes", "cost", "end")),
              default="newest", help="Sort key.")  # fmt: skip
@click.option("--check", is_flag=True, help="Check the history file, and print its path.")
@click.option("--recover", metavar="SITE", shell_complete=sites_beginning,
              help="Rebuild lost runs from their folders at SITE.")  # fmt: skip
@click.option("--account", metavar="NAME", default="",
              help="With --recover or --of: project billed for the runs.")  # fmt: skip
@click.option("--export", "target", metavar="FILE", type=GivenPath(),
              help="Write all runs and their metrics to a new FILE, for another laptop."
              )  # fmt: skip
@click.option("--import", "source", metavar="FILE", type=GivenPath(),
              help="Merge the runs from an exported FILE.")  # fmt: skip
@json_option
@click.pass_obj
def history(
    reply: Reply,
    check: bool,
    recover: str | None,
    account: str,
    user: str,
    target: Path | None,
    source: Path | None,
    **filters: Unpack[_Filters],
) -> None:
    """List runs, move them to another laptop, or rebuild lost ones.

    The list shows the last known states; `lumitui status` queries the sites. --of reads a
    colleague's run folders at a site; `lumitui show RUN --of USER` shows one.

    The last line sums up what the listed runs cost; --filter 'age<30d' --limit 10000 lists a month.
    """
    if account and recover is None and not user:
        raise InputError(
            "--account works only with --recover or --of.", "Add --recover SITE or --of USER."
        )
    if sum((check, recover is not None, target is not None, source is not None, bool(user))) > 1:
        raise InputError(
            "--check, --recover, --export, --import and --of cannot be combined.",
            "Choose one of them.",
        )
    if user:
        with core_of(user, filters["site_name"], account) as (runs, _):
            _list(reply, runs, filters | {"site_name": None})
        return
    if recover is not None:
        _recover(reply, recover, account)
        return
    with core() as runs:
        if target is not None:
            _export(reply, runs, target)
        elif source is not None:
            _import(reply, runs, source)
        elif check:
            _check(reply, runs)
        else:
            _list(reply, runs, filters)


def _list(reply: Reply, runs: "Runs", filters: _Filters) -> None:
    # Late: pydantic takes ten times as long as `lumitui --version` itself.
    from lumitui.app.runs import Filter, Order, OrderBy, parse_filter

    site, order = filters["site_name"], Order(OrderBy(filters["sort"]))
    terms = parse_filter(filters["filter_text"]) if filters["filter_text"] else ()
    known_site(runs, site)
    passing, limit = Filter(site, terms=terms), filters["limit"]
    matches = runs.history.listed(limit + 1, passing, order)
    shown = matches[:limit]
    reply.give([run_data(run) for run in shown], tables.history_table(shown, columns()))
    if not shown:
        say("No runs match." if runs.history.count() else "No runs yet. Start with `lumitui new`.")
    if cost := row_words.total(shown, time.time()):
        say(f"{words.count(len(shown), 'run')} listed, billed about {cost} in all.")
    if len(matches) > limit:
        say(f"More than {words.count(limit, 'run')} match; --limit N lists more.")


def _check(reply: Reply, runs: "Runs") -> None:
    # Count first: after a check that finds damage, the next use sets the file aside.
    count, facts = runs.history.count(), runs.history.facts(check=True)
    data = {"path": facts.path, "schema": facts.schema, "size": facts.size, "runs": count}
    data |= {"damage": facts.damage, "lost_texts": facts.lost_texts}
    reply.give(data, tables.file_words(facts, count))
    if facts.damage:
        raise HistoryError(
            f"The history {facts.path} is damaged.",
            "Run `lumitui history`, which sets the file aside and starts a new one. Then rebuild "
            "each site's runs with `lumitui history --recover SITE`.",
        )
    if facts.lost_texts:
        raise HistoryError(
            f"{words.count(facts.lost_texts, 'text')} in the history {facts.path} cannot be read.",
            "`lumitui history --recover SITE` restores whatever the runs' folders still contain.",
        )


def _export(reply: Reply, runs: "Runs", target: Path) -> None:
    done = runs.history.exchange.export(target)
    data = {"path": done.path, "runs": done.runs, "left_out": done.left_out}
    reply.give(data, f"{done.path}: {words.count(done.runs, 'run')}")
    if done.left_out:
        say(f"{words.count(done.left_out, 'run')} omitted: being sent, or unreadable.")


def _import(reply: Reply, runs: "Runs", source: Path) -> None:
    done = runs.history.exchange.merge(source)
    data = {"added": done.added, "updated": done.updated, "unchanged": done.unchanged}
    reply.give(data, "\n".join((*done.added, *done.updated)))
    say(
        f"Added {words.count(len(done.added), 'run')}; {len(done.updated)} updated, "
        f"{done.unchanged} unchanged."
    )


def _recover(reply: Reply, site_name: str, account: str) -> None:
    with core() as runs:
        recovered = runs.recover(site_name, account, report=partial(show_step, ""))
    for warning in recovered.warnings:
        warn(warning)
    for item in recovered.passed:
        say(f"skipped {item.folder}: {item.why}")
    data = {
        "site": site_name,
        "roots": recovered.roots,
        "rebuilt": [run_data(run) for run in recovered.rebuilt],
        "known": recovered.known,
        "passed_over": recovered.passed,
        "warnings": recovered.warnings,
    }
    reply.give(data, tables.history_table(recovered.rebuilt, columns()))
    rebuilt = words.count(len(recovered.rebuilt), "run")
    say(
        f"Rebuilt {rebuilt} at {site_name}; {recovered.known} were already in the history, "
        f"{len(recovered.passed)} were skipped."
    )
    if unknown := sum(run.state is State.UNKNOWN for run in recovered.rebuilt):
        say(
            f"The state of {words.count(unknown, 'run')} is unknown. `lumitui status` queries "
            "Slurm again; runs that its accounting has dropped stay unknown."
        )
