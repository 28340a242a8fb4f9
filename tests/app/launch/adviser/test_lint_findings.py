"""What the rules about any script say of a job file: at its key, with its fix, and only once."""

import pytest

from lumitui.app.launch.adviser.adviser import findings
from lumitui.app.launch.compose import compose
from lumitui.remote.site.finding import Finding
from tests.support.jobs.sites.lumi_job import LUMI, job
from tests.support.jobs.sites.official_jobs import Official, official_jobs
from tests.support.jobs.sites.site_jobs import launched, site

SOME = 19
"""One in nineteen is enough to see a mistake; all are looked at by the slow test."""
TRUE = {
    "retired": "the machine has closed",
    "few-cores": "documents of Mahti ask for fewer cores than a node has for its GPUs",
    "launcher": "a wiki uses an mpirun that the profile does not have",
    "idle-gpus": "examples of one GPU, where a partition has whole nodes alone",
    "scattered": "documents show two nodes with a part of the GPUs of each",
    "torchrun-unbound": "the laptop's torchrun binds nothing",
    "puhti-bf16": "examples of today at a machine of 2019",
}
"""What is found in some of these jobs, and holds."""


def false_ones(item: Official) -> list[str]:
    return [
        f"{item.name}: {one.rule}: {one.message}"
        for one in findings(item.launch, item.site, item.files)
        if one.severity != "note" and one.rule not in TRUE
    ]


def test_no_job_that_we_propose_is_found_fault_with() -> None:
    assert [words for item in official_jobs(SOME) for words in false_ones(item)] == []


@pytest.mark.slow
def test_not_one_job_that_we_propose_is_found_fault_with() -> None:
    assert [words for item in official_jobs() for words in false_ones(item)] == []


def test_a_rule_of_a_site_stands_at_the_key_that_it_is_about() -> None:
    launch = compose(job(nodes=2, env={"NCCL_SOCKET_IFNAME": "eth0"}), LUMI)
    found = [one for one in findings(launch, LUMI) if one.at.field == "env.NCCL_SOCKET_IFNAME"]
    assert found, "the profile has a rule about it"


def test_nothing_is_said_twice() -> None:
    long = launched("lumi", "small-g", time="5-00:00:00", nodes=9)
    said: list[Finding] = findings(long, site("lumi"))
    names = [one.rule for one in said]
    assert names.count("time-limit") == 1 and names.count("nodes") == 1
