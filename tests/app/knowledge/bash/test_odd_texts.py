"""Whatever a text is, reading it raises nothing."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.knowledge.bash import read_script
from lumitui.app.knowledge.rule import RULE_FAILED
from lumitui.app.knowledge.rule_table import findings
from lumitui.remote.site.sites import BUILT_IN, Sites

LUMI = Sites([BUILT_IN]).load("lumi")

_SIGNS = list("\n\n\n \t;|&<>(){}[]$\"'`\\=#*!~")
_WORDS = [
    "$((",
    "))",
    "$(",
    "${",
    "<<EOF",
    "EOF",
    "if",
    "then",
    "fi",
    "for",
    "in",
    "do",
    "done",
    "case",
    "esac",
    "srun",
    "singularity",
    "exec",
    "bash",
    "-c",
    "python",
    "torchrun",
    "--nproc_per_node",
    "export",
    "A=1",
    "A=(",
    "$A",
    "${A:-",
    "${A[@]}",
    "f()",
    "f",
    "eval",
    "source",
    "é",
]
WORDS = st.sampled_from([*_SIGNS, *_WORDS, "#SBATCH -N 2", "#SBATCH --", "\0", "\r\n", "\udcff"])


@given(st.lists(WORDS, max_size=40).map(" ".join))
def test_no_order_of_bashs_words_raises(text: str) -> None:
    job = read_script(text, site=LUMI)
    assert {command.step for command in job.commands} <= {None, *range(len(job.steps))}
    assert RULE_FAILED not in {one.rule for one in findings(job, LUMI)}


@given(st.text(max_size=200))
def test_no_text_raises(text: str) -> None:
    found = findings(read_script(text, site=LUMI), LUMI)
    assert RULE_FAILED not in {one.rule for one in found}


def test_a_letter_of_any_script_is_a_letter() -> None:
    job = read_script("#!/bin/bash\n{\U000f7dc0w\x12\nΩ=1 srun 訓練.py é{x\n", site=LUMI)
    assert [step.program.text for step in job.steps if step.program] == ["訓練.py"]


@pytest.mark.parametrize(
    "text",
    [
        "", "\n", "#!", "(" * 10_000 + "b" + ")" * 10_000, "$(" * 10_000, '"$(' * 5_000,
        "|" * 100_000, "a=(\n" * 50_000, "srun x\n" * 700_000, "X=1\n" + "X=$X$X$X$X\n" * 200,
        "f() { f; f; }\nf\n", "a && " * 5_000 + "b", "if a; then\n" * 2_000, "`" * 9_999,
        "\n".join(f"f{n}() {{ f{n + 1}; f{n + 1}; }}" for n in range(40)) + "\nf0\n",
    ],
    ids=lambda text: f"{text[:8]!r}*{len(text)}",
)  # fmt: skip
def test_no_size_raises_or_takes_long(text: str) -> None:
    read_script(text, site=LUMI)


@pytest.mark.parametrize(
    "text",
    [
        '[[$X ["a" [ $Y] <<E\n' * 9_000,
        "rm -rf /x/$UNSET_NAME/* $OTHER_NAME\n" * 2_000,
        "".join(f"export VAR_{n}X=1\necho $VAR_{n}Y $SLURM_PROCD\n" for n in range(2_000)),
        "srun -n 1 ./a &\n" * 600,
    ],
    ids=lambda text: f"{text[:20]!r}*{len(text)}",
)
def test_the_rules_take_no_time_that_grows_with_the_square(text: str) -> None:
    start = time.process_time()
    found = findings(read_script(f"#!/bin/bash\n#SBATCH --mem=1G\n{text}", site=LUMI), LUMI)
    assert RULE_FAILED not in {one.rule for one in found}
    assert time.process_time() - start < 20
