"""A job that sends itself again: after any failure, or while there is work left."""

import pytest

from lumitui.app.knowledge.any_site import any_site
from lumitui.app.knowledge.bash import read_script
from lumitui.app.knowledge.rule_table import findings


def speaks(body: str) -> bool:
    site = any_site()
    job = read_script(f"#!/bin/bash\n#SBATCH -N 1 -t 1:00:00\n{body}\n", site=site)
    return "endless-requeue" in {each.rule for each in findings(job, site)}


@pytest.mark.parametrize(
    "body",
    [
        "if ! srun python t.py; then scontrol requeue $SLURM_JOB_ID; fi",
        "srun python t.py || sbatch $0",
        "srun python t.py --epochs 9 \\\n  || scontrol requeue $SLURM_JOB_ID",
        "srun python t.py\nrc=$?\n[ $rc -ne 0 ] && scontrol requeue $SLURM_JOB_ID",
        "srun python t.py\nif [[ $? != 0 ]]; then\n  scontrol requeue $SLURM_JOB_ID\nfi",
        'if srun python t.py; then\n  echo done\nelse\n  sbatch "$0"\nfi',
        "srun python t.py\nret=$?\nif (( ret )); then scontrol requeue $SLURM_JOB_ID; fi",
    ],
)
def test_a_requeue_after_any_failure_is_found(body: str) -> None:
    assert speaks(body)


@pytest.mark.parametrize(
    "body",
    [
        "srun python t.py\n[ -e done ] || sbatch $0",
        "srun python t.py\nif ! grep -q finished log; then scontrol requeue $SLURM_JOB_ID; fi",
        'srun python t.py\nif [ -e done ]; then\n  echo done\nelse\n  sbatch "$0"\nfi',
        "srun python t.py\nif [ $? -eq 85 ]; then scontrol requeue $SLURM_JOB_ID; fi",
        "srun python t.py || { [ $? -eq 85 ] && scontrol requeue $SLURM_JOB_ID; }",
        "if ! srun python t.py; then\n  (( n < 3 )) && scontrol requeue $SLURM_JOB_ID\nfi",
        "trap 'scontrol requeue $SLURM_JOB_ID' USR1\nsrun python t.py &\nwait",
        "srun python t.py && sbatch next.sh",
    ],
)
def test_a_requeue_with_an_end_is_not(body: str) -> None:
    assert not speaks(body)
