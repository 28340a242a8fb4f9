"""Tasks of an array that write to one folder: settings of one training, or many inputs."""

import pytest

from lumitui.app.knowledge.any_site import any_site
from lumitui.app.knowledge.bash import read_script
from lumitui.app.knowledge.rule_table import findings


@pytest.mark.parametrize(
    ("option", "speaks"),
    [("--weight_decay=$X", True), ("--lr $X", True), ("--input $X", False), ("--lr 0.1", False)],
)
def test_a_sweep_overwrites_and_many_inputs_do_not(option: str, speaks: bool) -> None:
    text = (
        "#!/bin/bash\n#SBATCH -N 1 -t 1:00:00 -a 1-9 -o %A_%a.out\n"
        f"X=$(sed -n ${{SLURM_ARRAY_TASK_ID}}p list)\nsrun python t.py {option} --out /data/o\n"
    )
    found = findings(read_script(text, site=any_site()), any_site())
    assert ("array-one-folder" in {each.rule for each in found}) == speaks
