"""A type of GPU in a request, at sites where Slurm knows types, none, or the profile does not."""

import pytest

from lumitui.app.knowledge.rule_table import findings
from tests.support.rules.script_findings import job_of, site_of

TEXT = "#!/bin/bash\n#SBATCH -A open-00-01 -p qgpu -N 1 -t 1:00:00\n#SBATCH --gres=gpu:{}:8\ntrue\n"


@pytest.mark.parametrize(
    ("types", "kind", "severity"),
    [
        ((), "a100", "error"),
        (("a100",), "a100", None),
        (("a100",), "h100", "error"),
        (None, "a100", None),
        (None, "h100", "warning"),
    ],
)
def test_a_type_is_judged_by_what_the_profile_knows(
    types: tuple[str, ...] | None, kind: str, severity: str | None
) -> None:
    site = site_of("karolina")
    site = site.model_copy(update={"node": site.node.model_copy(update={"gres_types": types})})
    found = findings(job_of(TEXT.format(kind), "karolina"), site)
    own = [one for one in found if one.rule == "gres-type"]
    assert [one.severity for one in own] == ([severity] if severity else [])
    assert all(one.do == "Write --gpus-per-node=8." and one.fix for one in own)
