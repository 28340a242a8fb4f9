"""Which variables a piece of a script names, which shell expands them, and what they become."""

import pytest

from lumitui.app.knowledge.bash import read_script
from lumitui.app.knowledge.rule_table import findings
from lumitui.app.knowledge.site_facts.expansions import (
    names_in,
    outside_single_quotes,
    put_in,
    source_at,
)
from tests.support.jobs.sites.site_jobs import site

LUMI = site("lumi")


@pytest.mark.parametrize(
    ("source", "batch"),
    [
        ("'$RANK'", ()),
        ('"$RANK"', ("RANK",)),
        (r'"\$RANK $HOME"', ("HOME",)),
        ("\"a '$RANK' b\"", ("RANK",)),
        ("a'$X'\"$Y\"${Z:-1}", ("Y", "Z")),
        (r"\\$RANK", ("RANK",)),
        ("${#LIST[@]} ${!NAME}", ("LIST", "NAME")),
    ],
)
def test_only_what_stands_outside_single_quotes_is_expanded_at_once(
    source: str, batch: tuple[str, ...]
) -> None:
    assert names_in(outside_single_quotes(source)) == batch


def test_a_path_has_the_values_of_the_scripts_own_variables() -> None:
    job = read_script("#!/bin/bash\nA=/tmp/$USER\nB=${A}/cache\nP=$(pwd)\n", site=LUMI)
    assert put_in(job, "$B/miopen") == "/tmp/$USER/cache/miopen"
    assert put_in(job, "$P/x") == "$P/x"
    assert put_in(job, "$OTHER") == "$OTHER"


def test_a_variable_that_names_itself_ends() -> None:
    job = read_script("#!/bin/bash\nPATH=$PATH:$PATH:$PATH\n", site=LUMI)
    assert len(put_in(job, "$PATH" * 50)) < 100_000


def test_the_source_of_a_word_has_its_quotes_and_its_lines() -> None:
    text = "#!/bin/bash\nsrun bash -c 'a\n  b' x\n"
    (step,) = read_script(text.replace("a\n", "python a.py\n"), site=LUMI).steps
    job = read_script(text.replace("a\n", "python a.py\n"), site=LUMI)
    assert source_at(job, step.shells[0].at) == "'python a.py\n  b'"


@pytest.mark.parametrize(
    "line",
    [
        "sleep " + "9" * 5000,
        "export WORLD_SIZE=" + "1" * 5000,
        "export MASTER_PORT=" + "8" * 5000,
        "srun -n " + "7" * 5000 + " python a.py",
        "srun torchrun --nproc_per_node=" + "6" * 5000 + " a.py",
        "rm -rf $",
        "mkdir -p $A$A$A",
        "rsync --delete",
        "singularity exec",
        "srun singularity exec '' ''",
        "conda activate",
        "module load ''",
        "cd",
        "export X='$X'",
    ],
)
def test_no_rule_breaks_on_odd_words(line: str) -> None:
    head = "#!/bin/bash\n#SBATCH -p small-g -N 2 --gpus-per-node=8 -n 16\n"
    for name in ("lumi", "mn5", "roihu"):
        at = site(name)
        job = read_script(f"{head}{line}\nsrun python a.py\n", site=at)
        assert all(item.message and item.do for item in findings(job, at))
