"""A missing account: the rule's description says why lint and preview differ."""

from lumitui.app.knowledge.rule_table import SCRIPT_RULES
from tests.support.rules.script_findings import findings_in

TEXT = "#!/bin/bash\n#SBATCH -p qgpu -N 1 -t 1:00:00 --gpus=1\nsrun python3 t.py\n"


def test_a_script_without_an_account_gets_a_warning_as_the_rule_says() -> None:
    (found,) = [one for one in findings_in(TEXT, "karolina") if one.rule == "account"]
    (rule,) = [one for one in SCRIPT_RULES if one.id == "account"]
    assert (found.severity, rule.severity) == ("warning", "error")
    assert "In a script, a missing account is a warning, because SBATCH_ACCOUNT" in rule.why
