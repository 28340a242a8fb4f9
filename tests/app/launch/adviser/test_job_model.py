"""A launch as the rules see it, and what they say of it: at its key, with its fix, once."""

import pytest

from lumitui.app.knowledge.bash import read_script
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.app.launch.adviser.adviser import findings
from lumitui.app.launch.adviser.job_model import job_of
from lumitui.app.launch.compose import compose, plain_script
from lumitui.app.launch.job_price import memory_gib
from lumitui.app.launch.placement import placement_of
from lumitui.app.launch.program_call import container_environment
from lumitui.remote.site import walltime
from lumitui.remote.site.finding import Finding
from tests.support.jobs.sites.lumi_job import LUMI, job
from tests.support.jobs.sites.official_jobs import Official, official_jobs
from tests.support.jobs.sites.site_jobs import launched, site

SOME = 19
"""One in nineteen is enough to see a mistake; all are looked at by the slow test."""


def model(item: Official) -> ScriptJob:
    return job_of(item.launch, placement_of(item.launch.spec, item.site), item.files)


def test_a_launch_is_seen_as_it_was_planned() -> None:
    for item in official_jobs(SOME):
        seen_as_planned(item)
        knows_its_keys(item)


@pytest.mark.slow
def test_every_launch_is_seen_as_it_was_planned() -> None:
    for item in official_jobs():
        seen_as_planned(item)
        knows_its_keys(item)


def seen_as_planned(item: Official) -> None:
    spec, layout, site = item.launch.spec, item.launch.layout, item.site
    place, seen = placement_of(spec, site), model(item)
    asked = seen.resources
    assert seen.troubles == (), item.name
    assert asked.partition == (place.partition.slurm_partition or spec.partition)
    assert asked.account == (spec.account if site.account.required else None)
    assert asked.nodes == spec.nodes and asked.seconds == walltime.seconds_of(spec.time)
    assert asked.tasks_per_node == layout.tasks_per_node
    assert asked.cpus_per_task == layout.cpus_per_task
    if seen.options.has("gpus-per-node", "gres"):
        assert asked.gpus_per_node == layout.gpus_per_node
    if memory := memory_gib(place, layout):
        assert asked.memory_gib == pytest.approx(memory)
    (step,) = seen.training
    assert seen.rank.per_node == layout.ranks_per_node
    assert seen.rank.world_size == layout.world_size
    image = step.container.image if step.container else None
    assert (image.known if image else "") == (place.image if step.container else "")
    assert bool(place.container) == bool(step.container)
    if spec.script:
        assert step.program is not None and step.program.known == spec.script
    for key, value in spec.env.items():
        variable = seen.variable(key, shell="batch")
        assert variable is not None and variable.exported
        assert variable.value == value or "$STAGE_" in value
    for key in container_environment(place):
        assert seen.variable(key, shell="batch") is not None


def knows_its_keys(item: Official) -> None:
    spec, seen = item.launch.spec, model(item)
    for key in ("nodes", "partition", "time"):
        option = seen.options.get(key)
        assert option is not None and option.at.field == key
    fields = {option.at.field for option in seen.options.all}
    assert ("sbatch" in fields) == bool(spec.sbatch)
    for key in spec.env:
        variable = seen.variable(key, shell="batch")
        assert variable is not None and variable.at.field == f"env.{key}"
    own = {item.at.field for item in seen.variables} - {""}
    assert own == {f"env.{key}" for key in spec.env}
    (step,) = seen.training
    assert step.at.field == "launcher"
    assert {word.at.field for word in step.arguments} <= {"args", "deepspeed.config", "resume"}
    written = [word.known for word in step.arguments if word.at.field == "args"]
    assert written[: len(spec.args)] == [text for text in spec.args] or spec.stage


def test_the_script_for_plain_slurm_is_seen_alike() -> None:
    # What may differ: the positions' fields, the name, and what the project calls its files.
    for item in official_jobs(SOME):
        one = model(item)
        other = read_script(plain_script(item.launch, item.site, "job"), site=item.site)
        assert (one.resources, one.rank, one.modules) == (
            other.resources,
            other.rank,
            other.modules,
        )
        assert [option.raw for option in one.options.all] == [o.raw for o in other.options.all]
        assert len(one.steps) == len(other.steps)


def test_the_rules_get_the_programs_text_by_the_name_that_the_job_uses() -> None:
    launch = compose(job(nodes=2, links={"data": "/scratch/x"}), LUMI)
    seen = job_of(launch, placement_of(launch.spec, LUMI), {"train.py": "import torch\n"})
    (step,) = seen.training
    assert step.program is not None
    assert seen.files[step.program.known] == "import torch\n"
    (link,) = [command for command in seen.commands if command.program == "ln"]
    assert ("/scratch/x", "links.data") in [(word.known, word.at.field) for word in link.words]


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
