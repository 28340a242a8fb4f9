"""The verb that says what is wrong with any sbatch script, before the queue does."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

import click

from lumitui.app.cli.inquiry import cluster_option
from lumitui.app.cli.output import Reply, put, put_bytes, say, show
from lumitui.app.cli.script_file import script_bytes
from lumitui.app.cli.session import core, json_option, own_settings, sites_beginning
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.safe_text import comment

if TYPE_CHECKING:
    from lumitui.app.knowledge.model.job import Job
    from lumitui.app.knowledge.report.checked import Checked
    from lumitui.app.knowledge.rule import Finding
    from lumitui.remote.site.profile import Site
    from lumitui.remote.site.sites import Sites

_LARGEST = 1_000_000
"""Bytes of a file beside the script that is read."""
_MOST_FILES = 60
_ROUNDS = 10
"""Times that --fix looks again, as one change can make way for another."""
Format = Literal["text", "github", "sarif", "json"]
Ask = Callable[["Job", "Site"], Sequence["Finding"]]
"""Returns what the cluster says of a job."""


class _Options(TypedDict):
    site_name: str | None
    layout: Format
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    fix: bool
    diff: bool
    cluster: bool


@click.command()
@click.argument("scripts", metavar="SCRIPT...", nargs=-1, required=True)
@click.option(
    "--site",
    "site_name",
    metavar="SITE",
    shell_complete=sites_beginning,
    help="Where they will run; by default what their partition and account say.",
)
@click.option(
    "--format",
    "layout",
    type=click.Choice(["text", "github", "sarif", "json"]),
    default="text",
    help="How findings are printed: github and sarif are for a CI.",
)
@click.option("--select", metavar="RULES", multiple=True, help="Only these rules, like `a,b`.")
@click.option("--ignore", metavar="RULES", multiple=True, help="All rules but these.")
@click.option("--fix", is_flag=True, help="Make the mechanical changes in the scripts.")
@click.option("--diff", is_flag=True, help="Show what --fix would change, and change nothing.")
@cluster_option
@json_option
@click.pass_obj
def lint(reply: Reply, scripts: tuple[str, ...], **options: Unpack[_Options]) -> int:
    """Say what is wrong with any sbatch script.

    SCRIPT `-` is standard input. The exit code is 0 when there is nothing above a note, 1 when
    there are errors or warnings, and 2 when a script cannot be read. Where neither --site nor the
    script says where it runs, the rules that hold everywhere are applied.
    A comment `# lumitui: ignore=RULE` silences a rule on its line, or on the command below it. No
    site is asked without --cluster.
    """
    if reply.json and options["layout"] != "text":
        raise InputError("--json and --format exclude each other.", "Leave out one of them.")
    _refuse_unknown_rules(options)
    from lumitui.remote.site.sites import Sites

    known = Sites(own_settings().profiles)
    changed = False
    checked: list[Checked] = []
    with _asking(options) as ask:
        for path in scripts:
            text = script_bytes(path).decode(errors="surrogateescape")
            site = _site(known, text, path, options["site_name"], cluster=options["cluster"])
            one = _check(path, text, site, options, ask)
            if options["fix"] or options["diff"]:
                after = _fixed(one, site, options, ask)
                changed |= after.text != text
                _show_change(path, text, after, options)
                one = one if options["diff"] else after
            checked.append(one)
    if options["diff"]:
        return 1 if changed else 0
    _print(reply, tuple(checked), options)
    speaks = any(item.severity != "note" for one in checked for item in one.findings)
    return 1 if speaks else 0


@contextmanager
def _asking(options: _Options) -> Iterator[Ask]:
    """Yield what asks the cluster about a job, where a person wants that."""
    if not options["cluster"]:
        yield lambda job, site: ()
        return
    with core() as runs:
        yield lambda job, site: runs.inquiries.of_script(job, site).findings


def _refuse_unknown_rules(options: _Options) -> None:
    from lumitui.app.knowledge.rules.phrases import nearest

    names = [*_names(options["select"]), *_names(options["ignore"])]
    if not names:
        return
    known = [*_known_rules()]
    for name in names:
        if name not in known:
            meant = nearest(name, known)
            hint = f"Did you mean {meant}?" if meant else "`lumitui rules` lists them."
            raise InputError(f"There is no rule {name!r}.", hint)


def _known_rules() -> Iterator[str]:
    from lumitui.app.knowledge.rule_catalogue import UNUSED_IGNORE
    from lumitui.app.knowledge.rule_table import RULES
    from lumitui.app.survey.inquiry.topics import TOPICS
    from lumitui.remote.site.sites import Sites

    yield UNUSED_IGNORE.id
    yield from (topic.id for topic in TOPICS)
    yield from (rule.id for rule in RULES)
    known = Sites(own_settings().profiles)
    for name in known.names():
        yield from (rule.id for rule in known.load(name).rules)


def _names(given: tuple[str, ...]) -> set[str]:
    return {name.strip() for text in given for name in text.split(",") if name.strip()}


def _site(known: "Sites", text: str, path: str, given: str | None, *, cluster: bool) -> "Site":
    if given is not None:
        return known.load(given)
    from lumitui.app.knowledge.any_site import any_site
    from lumitui.app.knowledge.guess import guess_site

    every = [known.load(name) for name in known.names()]
    guess = guess_site(text, every, date.today(), known.added())
    if guess.site is None:
        if cluster:
            raise InputError(
                f"Nothing in {path} says for which site it is, so no cluster can be asked.",
                "Name the site with --site.",
            )
        say(
            f"{comment(path)}: no site's rules were applied, as nothing in it says where it runs. "
            "Name the site with --site (`lumitui sites` lists them; "
            "`lumitui init --site NAME --host HOST` makes a profile of another)."
        )
        return any_site()
    say(f"{comment(path)}: read as a job for {guess.site.name}, because of {guess.because}.")
    return guess.site


def _check(path: str, text: str, site: "Site", options: _Options, ask: Ask) -> "Checked":
    from lumitui.app.knowledge.any_site import is_known
    from lumitui.app.knowledge.bash import read_script
    from lumitui.app.knowledge.report.checked import Checked
    from lumitui.app.knowledge.report.silence import heard
    from lumitui.app.knowledge.rule_table import findings

    files: dict[str, str] = {}
    job = read_script(text, site=site)
    if path != "-":
        folder = Path(path).parent
        for _ in range(3):
            before = len(files)
            files |= _beside(folder, job, files)
            if len(files) == before:
                break
            job = read_script(text, site=site, files=files)
    found = heard([*findings(job, site), *ask(job, site)], text, _known_rules)
    prefix = "" if path == "-" or Path(path).parent == Path() else f"{Path(path).parent}/"
    name = site.name if is_known(site) else None
    return Checked(path, name, text, tuple(_chosen(found, options)), files, prefix)


def _beside(folder: Path, job: "Job", held: dict[str, str]) -> dict[str, str]:
    """Return the texts of the files that a job names inside the script's folder."""
    from lumitui.app.knowledge.bash.referenced_files import named_files

    found: dict[str, str] = {}
    top = folder.resolve()
    for name in named_files(job):
        if name in held or len(held) + len(found) >= _MOST_FILES:
            continue
        try:
            path = (folder / name).resolve()
            if not path.is_relative_to(top) or not path.is_file():
                continue
            if path.stat().st_size <= _LARGEST:
                found[name] = path.read_bytes().decode(errors="replace")
        except (OSError, ValueError):
            continue
    return found


def _chosen(found: "list[Finding]", options: _Options) -> "Iterator[Finding]":
    only, without = _names(options["select"]), _names(options["ignore"])
    for item in found:
        if (not only or item.rule in only) and item.rule not in without:
            yield item


def _fixed(one: "Checked", site: "Site", options: _Options, ask: Ask) -> "Checked":
    from lumitui.app.knowledge.report.edits import fixed

    for _ in range(_ROUNDS):
        text, count = fixed(one.text, one.findings)
        if not count or text == one.text:
            break
        one = _check(one.path, text, site, options, ask)
    return one


def _show_change(path: str, before: str, after: "Checked", options: _Options) -> None:
    """Write the fixed script, or with --diff show the change alone."""
    from lumitui.app.knowledge.report.edits import difference

    if options["diff"]:
        show(difference(before, after.text, comment(path)), nl=False)
    elif path == "-":
        put_bytes(after.text.encode(errors="surrogateescape"))
    elif after.text != before:
        try:
            with Path(path).open("r+b") as file:
                file.write(after.text.encode(errors="surrogateescape"))
                file.truncate()
        except OSError as error:
            raise InputError(
                f"{path} cannot be written: {error.strerror}.", "Look at --diff instead."
            ) from error
        say(f"Changed {comment(path)}.")


def _print(reply: Reply, checked: "tuple[Checked, ...]", options: _Options) -> None:
    from lumitui.app.job.settings import version
    from lumitui.app.knowledge.report.finding_text import findings_text, summary
    from lumitui.app.knowledge.report.formats import github_lines, sarif
    from lumitui.app.knowledge.rule_table import RULES

    data = [{"script": one.path, "site": one.site, "findings": one.findings} for one in checked]
    if reply.json or options["layout"] == "json":
        reply.json = True
        reply.give(data)
        return
    if options["layout"] == "sarif":
        import json

        put(json.dumps(sarif(checked, RULES, version()), indent=1))
    elif options["layout"] == "github":
        for one in checked:
            for line in github_lines(one):
                put(line)
    elif not (options["fix"] and "-" in [one.path for one in checked]):
        show("\n\n".join(text for one in checked if (text := findings_text(one))))
    say(summary(checked))
