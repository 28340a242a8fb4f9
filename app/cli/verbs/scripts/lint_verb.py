"""The verb that finds mistakes in any sbatch script before Slurm does."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal, TypedDict, Unpack

import click

from lumitui.app.cli.inquiry import cluster_option
from lumitui.app.cli.output import Reply, put, put_bytes, say, show
from lumitui.app.cli.script_file import script_bytes, scripts_of
from lumitui.app.cli.session import (
    GivenPath,
    core,
    json_option,
    profile_file,
    profiles,
    refuse_options,
    site_option,
)
from lumitui.app.explain import words
from lumitui.app.runs import InputError, LumiError, comment

if TYPE_CHECKING:
    from lumitui.app.runs import CheckedScript, Site
    from lumitui.app.runs.scripts import Scripts

Format = Literal["text", "github"]
_SEVERITIES = ("note", "warning", "error")
"""The worst last."""
_READ, _WRITTEN = click.File(errors="replace"), click.File("w", atomic=True)


class _LintOptions(TypedDict):
    site_name: str | None
    layout: Format
    fail_on: str
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    baseline: IO[str] | None
    write_baseline: IO[str] | None
    fix: bool
    diff: bool
    cluster: bool


@click.command()
@click.argument("scripts", metavar="SCRIPT...", nargs=-1, required=True, type=GivenPath())
@site_option(
    "Target site, or the path of its profile. [default: guessed from partition, account and paths]"
)
@click.option(
    "--fail-on", type=click.Choice(_SEVERITIES[::-1]), default="warning", show_default=True,
    help="Exit with 1 for findings of at least this severity.",
)  # fmt: skip
@click.option(
    "--format", "layout", type=click.Choice(["text", "github"]), default="text",
    help="Output format; github annotates pull requests. [default: text]",
)  # fmt: skip
@click.option("--select", metavar="RULES", multiple=True, help="Run only these rules: `a,b`.")
@click.option("--ignore", metavar="RULES", multiple=True, help="Skip these rules.")
@click.option("--baseline", type=_READ, metavar="FILE", help="Leave out the findings in FILE.")
@click.option("--write-baseline", type=_WRITTEN, metavar="FILE", help="Write all findings to FILE.")
@click.option("--fix", is_flag=True, help="Apply mechanical fixes to the scripts.")
@click.option("--diff", is_flag=True, help="Show the fixes without applying them.")
@cluster_option
@json_option
@click.pass_obj
def lint(reply: Reply, scripts: tuple[Path, ...], **options: Unpack[_LintOptions]) -> int:
    """Find mistakes in any sbatch script.

    For a folder, reads every script in it that has `#SBATCH` lines; `-` reads standard input. If
    the site is unknown, only site-independent rules run. Contacts no site unless you pass
    --cluster.

    A comment `# lumitui: ignore=RULE` silences a rule on its line or on the command below it.

    Exits with 1 if there are errors or warnings (see --fail-on), and with 2 if a script cannot be
    read.
    """
    if reply.json and options["layout"] != "text":
        raise InputError("--json and --format cannot be combined.", "Omit one of them.")
    if options["diff"]:
        refuse_options("has no effect with --diff", "fail_on", "baseline", "write_baseline")
    from lumitui.app.runs import baseline_text, findings_summary, without_baseline

    changed = False
    checked: list[CheckedScript] = []
    crash: Exception | None = None
    chosen = {"select": _names(options["select"]), "ignore": _names(options["ignore"])}
    asks, fixes = options["cluster"], options["fix"] or options["diff"]
    with _scripts(options) as checks:
        if (file := profile_file(options["site_name"])) is not None:
            checks, options["site_name"] = checks.with_profile(file), file.stem
        checks.refuse_unknown([*chosen["select"], *chosen["ignore"]])
        for path in scripts_of(map(str, scripts)):
            text = script_bytes(path).decode(errors="surrogateescape")
            site = _site(checks, text, path, options)
            try:
                one, after = checks.check(path, text, site, **chosen, fix=fixes, ask=asks)
            except LumiError:
                raise
            except Exception as defect:  # one bad script must not hide the others' findings
                crash = crash or defect
                say(f"{comment(path)}: not checked, because lumitui crashed.")
                continue
            if fixes:
                changed |= after.text != text
                _show_change(checks, text, after, diff=options["diff"])
            checked.append(one if options["diff"] else after)
    kept, failing = tuple(checked), _SEVERITIES[_SEVERITIES.index(options["fail_on"]) :]
    if options["diff"]:
        found = any(one.findings for one in kept)
        more = " None has a mechanical fix." if found and not changed else ""
        say(f"{findings_summary(kept)}{more}")
        code = int(changed)
    elif (target := options["write_baseline"]) is not None:
        _refuse_other(target.name)
        target.write(baseline_text(kept, target.name))
        say(f"{findings_summary(kept)} {comment(target.name)} lists them.")
        code = 0
    else:
        if (source := options["baseline"]) is not None:
            kept = without_baseline(kept, source.read(), source.name)
            known = sum(len(one.findings) for one in checked) - sum(len(o.findings) for o in kept)
            say(f"{comment(source.name)} leaves out {words.count(known, 'known finding')}.")
        _print(reply, kept, options)
        code = int(any(item.severity in failing for one in kept for item in one.findings))
    if crash is not None:
        raise crash
    return code


@contextmanager
def _scripts(options: _LintOptions) -> "Iterator[Scripts]":
    """Yield the checker of scripts, which can query clusters only with --cluster."""
    if options["cluster"]:
        with core() as runs:
            yield runs.scripts
        return
    from lumitui.app.runs.scripts import Scripts

    with profiles() as sites:
        yield Scripts(sites)


def _refuse_other(file: str) -> None:
    """Refuse to write a baseline over a file that is something else, such as the script."""
    from lumitui.app.runs import is_baseline

    try:
        text = Path(file).read_text(errors="replace")
    except OSError:
        return
    if text.strip() and not is_baseline(text):
        raise InputError(f"{file} exists and is not a baseline.", "Choose another file.")


def _names(lists: tuple[str, ...]) -> list[str]:
    names = (name.strip() for text in lists for name in text.split(","))
    return list(dict.fromkeys(name for name in names if name))


def _site(checks: "Scripts", text: str, path: str, options: _LintOptions) -> "Site | None":
    if options["site_name"] is not None:
        return checks.sites.load(options["site_name"])
    guess = checks.guess(text)
    if guess.site is not None:
        say(
            f"{comment(path)}: checked for {guess.site.name}, because of {guess.because}. "
            "If it is for another site, pass --site."
        )
        return guess.site
    if options["cluster"]:
        raise InputError(
            f"Cannot tell which site {path} is for, so lumitui cannot query a cluster.",
            "Pass the site with --site.",
        )
    say(
        f"{comment(path)}: only site-independent rules ran, because the site is unknown. Pass it "
        "with --site; `lumitui site show` lists the sites, and `lumitui site add` adds one."
    )
    return None


def _show_change(checks: "Scripts", before: str, after: "CheckedScript", *, diff: bool) -> None:
    """Write the fixed script, or with `diff` only show the change."""
    from lumitui.app.runs import edits_diff

    if diff:
        show(edits_diff(before, after.text, comment(after.path)), nl=False)
    elif after.path == "-":
        put_bytes(after.text.encode(errors="surrogateescape"))
    elif after.text != before:
        checks.write(after)
        say(f"Changed {comment(after.path)}.")


def _print(reply: Reply, checked: "tuple[CheckedScript, ...]", options: _LintOptions) -> None:
    from lumitui.app.runs import findings_summary, findings_text, github_lines

    data = [{"script": one.path, "site": one.site, "findings": one.findings} for one in checked]
    if reply.json:
        reply.give(data)
        return
    if options["layout"] == "github":
        for one in checked:
            for line in github_lines(one):
                put(line)
    elif not (options["fix"] and "-" in [one.path for one in checked]):
        show("\n\n".join(text for one in checked if (text := findings_text(one))))
    say(findings_summary(checked))
