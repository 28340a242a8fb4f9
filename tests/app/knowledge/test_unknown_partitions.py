"""A partition that the profile lacks: what the job requests decides which one was meant."""

from lumitui.app.knowledge.rule_table import findings
from lumitui.remote.site.finding import Finding
from tests.support.rules.script_findings import findings_in, job_of, site_of

HEAD = "#!/bin/bash\n#SBATCH -A {account} -p {name} -N 1 -t 1:00:00 {gpus}\nsrun python3 prep.py\n"


def unknown(name: str, gpus: str = "", site: str = "karolina") -> Finding:
    """Return the finding about this partition."""
    account = "open-00-01" if site == "karolina" else "project_462000001"
    text = HEAD.format(account=account, name=name, gpus=gpus)
    (found,) = [one for one in findings_in(text, site) if one.rule == "partition-unknown"]
    return found


def test_a_cpu_job_is_not_moved_to_gpus() -> None:
    found = unknown("qcpu")
    assert (found.severity, found.fix) == ("note", None)
    assert found.do == "Write a partition that `sinfo` lists."
    assert "lists only some partitions" in found.message


def test_a_cpu_job_gets_an_error_where_the_profile_lists_all_partitions() -> None:
    site = site_of("karolina").model_copy(update={"other_partitions": ()})
    text = HEAD.format(account="open-00-01", name="qcpu", gpus="")
    found = findings(job_of(text, "karolina"), site)
    (one,) = [each for each in found if each.rule == "partition-unknown"]
    assert (one.severity, one.fix) == ("error", None) and "qgpu." not in one.do


def test_a_misspelt_partition_is_written_as_it_was_meant() -> None:
    assert unknown("qgpuu", "--gpus=1").do == "Write --partition=qgpu."
    assert unknown("smal", site="lumi").do == "Write --partition=small."
    assert unknown("smal-g", "--gpus=1", site="lumi").do == "Write --partition=small-g."
