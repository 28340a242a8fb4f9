"""Hostile text: what shells, YAML, Slurm, templates, tables, terminals and SQL stumble over.

Hypothesis writes it from these fragments. `passable` may be in a job file and must arrive
unchanged; `refused` holds what no command should receive and must be told with field and line.
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

Value = TypeVar("Value")
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")

CANARY = "lumitui-canary"
"""What an executed string would leave where it was executed."""

SHELL = [
    f"$(touch {CANARY})", f"`touch {CANARY}`", f"; touch {CANARY} #", f"| touch {CANARY}",
    f"&& touch {CANARY}", f"\ntouch {CANARY}\n", f"$(<{CANARY})", f">{CANARY}", f"2>>{CANARY}",
    "'", '"', "\\", "\\'", "''", '""', "$'\\n'", "${HOME}", "$HOME", "$((1+1))", "${x:?}", "!!",
    "~", "~root", "*", "!1", "${IFS}", "?", "[a-z]", "{a,b}",
    "$@", "$*", "$$", "#", " # ", "\t", " ", "  x  ", "&",
    "|", ";", "<", ">", "(", ")", "EOF", "<<EOF\n", "\\\n", "set -e\nexit 3\n", "%s%n", "$",
]  # fmt: skip
OPTIONS = ["-", "--", "-n", "-rf", "--help", "--wrap=id", "-c", "-e", "=", "--x=y", "+x", "@file"]
SLURM = [
    "%j", "%x", "%A_%a", "%%", "%N", "#SBATCH --nodes=99\n", "\n#SBATCH --wrap=id", "|", "\\|",
    "RUNNING", "1|RUNNING|1|1|1|p|n|None", "lumitui:0123456789abcdef", "None assigned", "N/A",
]  # fmt: skip
TEMPLATES = [
    "{{ 7 * 7 }}", "{% raw %}", "{# x #}", "{{ program }}", "{0}", "{account}", "%(x)s", "{}", "}}",
    "[bold]", "[/]", "[/bold]", "[@click=app.quit]x[/]", "[link=x]", "\\[", "[red on blue]", "[$x]",
]  # fmt: skip
DATA = [
    "yes", "no", "null", "~", "010", "1e3", "10:00", "- a", "a: b", "? x", "&a *a", "!!python/x",
    "{", "[", "'; DROP TABLE runs; --", "' OR '1'='1", "\\u0000", "\\x00", "%00", "../..", "/",
    "NaN", "evidence id 1\n", "\n\n",
    "lumitui-0000000000000000-job|1|", ":lumitui-0000000000000000: 0\n",
]  # fmt: skip
UNICODE = [
    "é", "e\u0301", "日本語", "🚀", "👩\u200d🚀", "\u202e", "\u2066", "\u200b", "\ufeff", "\u2028",
    "\u2029", "\u00a0", "\u0301" * 8, "ﷺ", "\U0010ffff", "\ufffd", "²", "\u0661", "\u017f", "İ",
]  # fmt: skip
FRAGMENTS = [*SHELL, *OPTIONS, *SLURM, *TEMPLATES, *DATA, *UNICODE]
UNPASSABLE = ["\0", "\x1b[2J", "\x1b]0;owned\x07", "\x07", "\r", "\x7f", "\x9b31m", "\x85", "\x0b"]

_NAME = 60  # bytes; a folder, a file and an ending must fit the site's limits
_plain = st.characters(exclude_categories=["Cs", "Cc"])
passable: st.SearchStrategy[str] = st.one_of(
    st.sampled_from(FRAGMENTS),
    st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=6).map("".join),
    st.lists(st.sampled_from([*SHELL, " ", "x"]), max_size=9).map("".join),
    st.text(st.one_of(_plain, st.sampled_from("\t\n'\"\\$`")), max_size=40),
    st.builds(lambda text, count: text * count, st.sampled_from(FRAGMENTS), st.integers(50, 99)),
)
"""Text that a job file may hold; it reaches the program as it is, or a defect is found."""

one_line: st.SearchStrategy[str] = passable.map(
    lambda text: text.replace("\n", " ").replace("\t", " ")
)

file_name: st.SearchStrategy[str] = one_line.map(lambda text: text.replace("/", "|")).filter(
    lambda text: text not in ("", ".", "..") and len(text.encode()) <= _NAME
)

refused: st.SearchStrategy[str] = st.builds(
    lambda left, bad, right: left + bad + right,
    passable,
    st.sampled_from([*UNPASSABLE, "\ud800", "\udcff"]),
    passable,
)
"""Text that no command should receive."""


def written(strategy: st.SearchStrategy[Value], number: int) -> list[Value]:
    """Return `number` different values that hypothesis writes, the same ones every time."""
    found: list[Value] = []

    @settings(
        max_examples=4 * number,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(value: Value) -> None:
        if value not in found:
            found.append(value)

    collect()
    assert len(found) >= number, f"only {len(found)} different values"
    return found[:number]


def fuzzed(examples: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test on so many examples that are the same every time, without a limit for each."""
    return settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


def as_yaml(data: Mapping[str, object]) -> str:
    """Return a job file; JSON's strings are YAML's, but that YAML has no surrogates for emoji."""
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in data.items()]
    # Lone surrogates, separators and what YAML calls unprintable can only be written as escapes.
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", "\n".join(lines) + "\n")


def canaries(*folders: Path) -> list[Path]:
    """Return what executed strings left in `folders`."""
    return [path for folder in folders for path in folder.rglob(f"{CANARY}*")]
