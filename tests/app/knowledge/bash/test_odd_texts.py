"""Whatever a text is, reading it raises nothing."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.knowledge.rule import RULE_FAILED
from tests.support.rules.script_findings import job_of, rules_in

_SIGNS = list("\n\n\n \t;|&<>(){}[]$\"'`\\=#*!~")
_WORDS = (
    "$(( )) $( ${ <<EOF EOF if then fi for in do done case esac srun singularity exec bash -c "
    "python torchrun --nproc_per_node export A=1 A=( $A ${A:- ${A[@]} f() f eval source é"
)
WORDS = st.sampled_from(
    [*_SIGNS, *_WORDS.split(), "#SBATCH -N 2", "#SBATCH --", "\0", "\r\n", "\udcff"]
)


@given(st.lists(WORDS, max_size=40).map(" ".join))
def test_no_order_of_bashs_words_raises(text: str) -> None:
    job = job_of(text)
    assert {command.step for command in job.commands} <= {None, *range(len(job.steps))}
    assert RULE_FAILED not in rules_in(text)


@given(st.text(max_size=200))
def test_no_text_raises(text: str) -> None:
    assert RULE_FAILED not in rules_in(text)


def test_a_letter_of_any_script_is_a_letter() -> None:
    job = job_of("#!/bin/bash\n{\U000f7dc0w\x12\nΩ=1 srun 訓練.py é{x\n")
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
    job_of(text)


@pytest.mark.parametrize(
    "text",
    [
        '[[$X ["a" [ $Y] <<E\n' * 5_000,
        "rm -rf /x/$UNSET_NAME/* $OTHER_NAME\n" * 2_000,
        "".join(f"export VAR_{n}X=1\necho $VAR_{n}Y $SLURM_PROCD\n" for n in range(1_200)),
        "srun -n 1 ./a &\n" * 600,
    ],
    ids=lambda text: f"{text[:20]!r}*{len(text)}",
)
def test_the_rules_take_no_time_that_grows_with_the_square(text: str) -> None:
    start = time.process_time()
    assert RULE_FAILED not in rules_in(f"#!/bin/bash\n#SBATCH --mem=1G\n{text}")
    assert time.process_time() - start < 10
