"""What public scripts do rightly and a rule once took for a mistake."""

import pytest

from lumitui.app.knowledge.bash import read_script
from lumitui.app.knowledge.rule_table import findings
from lumitui.remote.site.sites import BUILT_IN, Sites

CONFIG = '{"train_batch_size": %s, "fp16": {"enabled": %s}, "bf16": {"enabled": true}}'
SITES = Sites([BUILT_IN])
FULL = "#SBATCH -p dev-g -N 2 --ntasks-per-node=8 --cpus-per-task=7 --gpus-per-node=8\n"


def said(site: str, text: str, **files: str) -> set[str]:
    """Return the errors and warnings about a script."""
    profile = SITES.load(site)
    found = findings(read_script(f"#!/bin/bash\n{text}", site=profile, files=files), profile)
    return {item.rule for item in found if item.severity != "note"}


@pytest.mark.parametrize(
    ("rule", "site", "right", "wrong"),
    [
        ("account", "karolina", "#SBATCH -A OPEN-30-35", "#SBATCH -A OPEN_30_35"),
        ("unknown-directive", "roihu", "#SBATCH --argos=no", "#SBATCH --gpu-per-node=4"),
        ("partition-missing", "alps", "#SBATCH -A a06", None),
    ],
)  # fmt: skip
def test_a_rule_is_silent_about_what_works(
    rule: str, site: str, right: str, wrong: str | None
) -> None:
    assert rule not in said(site, right)
    assert wrong is None or rule in said(site, wrong)


def test_a_configuration_is_read_without_the_program_that_reads_it() -> None:
    line = FULL + "srun python train.py --deepspeed_config c.json"
    assert "fp16-and-bf16" in said("lumi", line, **{"c.json": CONFIG % (32, "true")})
    assert "fp16-and-bf16" not in said("lumi", line, **{"c.json": CONFIG % (32, "false")})
    assert "deepspeed-batch" in said("lumi", line, **{"c.json": CONFIG % (24, "false")})
