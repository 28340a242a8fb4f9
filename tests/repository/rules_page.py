"""Write docs/rules.md and the examples of `lumitui rules` from the rules and their cases.

Run it when a rule or a case changes:
`PYTHONPATH=src:. .venv/bin/python -m tests.repository.rules_page`
"""

import difflib
import json
from collections.abc import Iterator
from pathlib import Path

from lumitui.app.knowledge.rule import Topic
from lumitui.app.runs.rulebook import EXAMPLES, RuleExample, topics
from lumitui.remote.site.sites import BUILT_IN, Sites
from tests.repository.markdown_text import plain_markdown
from tests.support.rules.rule_cases import Case, read_cases

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "rules.md"
_MOST = 12
"""Most lines of an example on each side; a longer one is cut."""
_HEAD = """# The adviser's rules

Look up a rule that `lumitui lint` or `lumitui preview` names. `lumitui rules ID` adds an example,
the source and, for a rule of one site, the fix. `make reference` writes this page.

[Check any sbatch script](lint.md) explains *error*, *warning* and *note*. If a rule lacks a fact,
it reports nothing.
"""
_PARTS = {
    "script": "Scripts and job files",
    "job file": "Job files alone",
    "cluster": "Queries of the cluster",
}


def example_of(case: Case) -> RuleExample:
    """Return the lines in which the two scripts of a case differ, or its files if they do."""
    bad, good = case.bad, case.good
    if bad == good:
        name = next(iter({**case.bad_files, **case.good_files}), "")
        bad, good = case.bad_files.get(name, ""), case.good_files.get(name, "")
    left, right = bad.splitlines(), good.splitlines()
    compared = difflib.SequenceMatcher(None, left, right, autojunk=False)
    wrong: list[str] = []
    cured: list[str] = []
    for kind, start, end, other_start, other_end in compared.get_opcodes():
        if kind != "equal":
            wrong += left[start:end]
            cured += right[other_start:other_end]
    return RuleExample(case.site, tuple(wrong[:_MOST]), tuple(cured[:_MOST]))


def examples_text() -> str:
    """Return the file of the examples: the first case of each rule, one a line."""
    found: dict[str, RuleExample] = {}
    for case in read_cases():
        example = example_of(case)
        if example.bad or example.good:  # a rule about the site itself has two sites, one script
            found.setdefault(case.rule, example)
    rows = [
        f"{json.dumps(name)}: {json.dumps({'site': one.site, 'bad': one.bad, 'good': one.good})}"
        for name, one in sorted(found.items())
    ]
    return "{\n" + ",\n".join(rows) + "\n}\n"


def page_text() -> str:
    """Return docs/rules.md."""
    known = Sites([BUILT_IN])
    every = topics(known.load(name) for name in known.names())
    return "\n".join([_HEAD, *_sections(every)]).rstrip() + "\n"


def _sections(every: tuple[Topic, ...]) -> Iterator[str]:
    """Yield the rules for each input, and those of each site below its name."""
    parts = {(subject, ""): heading for subject, heading in _PARTS.items()}
    names = sorted({one.site for one in every} - {""})
    parts |= {("site", name): f"Only at {name}" for name in names}
    for part, heading in parts.items():
        own = sorted(
            (one for one in every if (one.subject, one.site) == part), key=lambda one: one.id
        )
        yield f"## {heading}\n"
        for one in own:
            # A site's rule ends with its fix, which the finding and `lumitui rules ID` show.
            why = "" if one.subject == "site" else f" {one.why}"
            text = plain_markdown(f"{one.title.rstrip('.')}.{why}")
            yield f"### {one.id}\n*{one.severity}*: {text}\n"


def main() -> None:
    """Write both files."""
    EXAMPLES.write_text(examples_text(), encoding="utf-8")
    PAGE.write_text(page_text(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)} and {EXAMPLES.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
