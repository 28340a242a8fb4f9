"""The verb that applies the adviser's mechanical fixes to a job file."""

import difflib
from pathlib import Path

import click

from lumitui.app.cli.confirmation import confirm
from lumitui.app.cli.output import Reply, say, show
from lumitui.app.cli.session import core, job_argument, json_option, yes_option
from lumitui.app.explain import words
from lumitui.app.runs import comment


@click.command()
@job_argument
@click.option("--diff", "only_diff", is_flag=True, help="Show the changes without writing them.")
@yes_option
@json_option
@click.pass_obj
def fix(reply: Reply, job: Path, only_diff: bool, yes: bool) -> None:
    """Apply mechanical fixes to a job file after you confirm.

    Also offers `metrics:` for what the script prints, and `scale:` for its arguments. Preserves
    comments and the order of keys. Lists the findings that need your decision.
    """
    from lumitui.app.runs import fixed_draft, open_draft, save_draft

    with core() as runs:
        before = open_draft(job)
        result = fixed_draft(before, lambda draft: runs.drafts.check(draft).shown)
    for problem in result.done:
        assert problem.fix is not None
        say(f"fix: {problem.message} → {problem.fix.words}")
    for problem in result.left:
        say(f"{problem.severity}: {problem.words}")
    name, after = comment(str(job)), result.draft.text
    diff = "".join(
        difflib.unified_diff(
            before.text.splitlines(keepends=True), after.splitlines(keepends=True),
            name, f"{name} with the fixes",
        )
    )  # fmt: skip
    written = bool(diff) and not only_diff
    if diff and not reply.json:
        show(diff, nl=not diff.endswith("\n"))
    if written:
        question = f"Write {words.count(len(result.done), 'change')} to {name}?"
        confirm(question, yes=yes, otherwise=f"{name} is unchanged.")
        save_draft(result.draft)
        say(f"Wrote {name}.")
    elif not diff:
        say(f"{name} needs no mechanical fix.")
    reply.give({"written": written, "diff": diff, "fixed": result.done, "left": result.left})
