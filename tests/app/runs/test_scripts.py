"""Scripts and logs through the door, as a screen or a notebook asks: no verb, no history."""

import io
from pathlib import Path

import pytest

from lumitui.app.runs.log_file import why_of_log
from lumitui.app.runs.scripts import Scripts
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.sites import Sites
from tests.support.places import ROOT

SCRIPT = """#!/bin/bash -l
#SBATCH --partition=small-g
# SBATCH --exclude=nid005001
#SBATCH --gpus-per-node=1

bash steps.sh
"""


@pytest.fixture
def scripts() -> Scripts:
    return Scripts(Sites([ROOT / "templates" / "sites"]))


def test_a_script_is_checked_with_the_files_beside_it_and_fixed(
    scripts: Scripts, tmp_path: Path
) -> None:
    path = tmp_path / "job.sh"
    path.write_text(SCRIPT)
    (tmp_path / "steps.sh").write_text("srun python train.py\n")
    guess = scripts.guess(SCRIPT)
    assert guess.site is not None and guess.site.name == "lumi"
    one, after = scripts.check(
        str(path), SCRIPT, guess.site, select=["nearly-a-directive"], fix=True
    )
    assert [item.rule for item in one.findings] == ["nearly-a-directive"]
    assert "steps.sh" in one.files
    assert (after.findings, "#SBATCH --exclude=nid005001" in after.text) == ((), True)
    assert path.read_text() == SCRIPT  # a look changes nothing
    scripts.write(after)
    assert path.read_text() == after.text


def test_a_script_of_a_pipe_has_no_files_and_no_site(scripts: Scripts) -> None:
    one, after = scripts.check("-", SCRIPT, None)
    assert (one.site, dict(one.files), after) == (None, {}, one)


def test_a_rule_that_nobody_wrote_is_refused_with_the_one_that_was_meant(scripts: Scripts) -> None:
    scripts.refuse_unknown(["nearly-a-directive"])
    with pytest.raises(InputError) as caught:
        scripts.refuse_unknown(["nearly-a-directiv"])
    assert "nearly-a-directive" in caught.value.hint


def test_a_log_says_why_from_a_file_and_from_what_is_open(tmp_path: Path) -> None:
    text = (
        "step 1\n" * 3 + "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 20.00 GiB\n"
    )
    path = tmp_path / "slurm-7.out"
    path.write_text(text)
    (first, *_) = why_of_log(path)
    assert first.number == 4
    assert why_of_log(io.BytesIO(text.encode()))[0].cause == first.cause
    with pytest.raises(InputError, match="Cannot read"):
        why_of_log(tmp_path / "none.out")
    with pytest.raises(InputError, match="is empty"):
        why_of_log(io.BytesIO(b" \n"))
