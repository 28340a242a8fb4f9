"""Site profiles: those that come with the program, and LUMI's as its documentation has it."""

import json
import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from lumitui.app.job.json_schema import described_schema
from lumitui.remote.site import walltime
from lumitui.remote.site.container import Container
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.partition import Partition
from lumitui.remote.site.profile import Site
from lumitui.remote.site.sites import BUILT_IN, Sites
from tests.support.guide import scripts as guide_scripts
from tests.support.places import SITES

ALL = Sites([SITES, BUILT_IN])


# --- the profiles that come with the program


@pytest.mark.parametrize("name", ALL.names())
def test_every_profile_loads_and_is_whole(name: str) -> None:
    site = ALL.load(name)
    assert site.name == name
    assert site.title
    assert site.partitions
    for partition in site.partitions.values():
        assert walltime.seconds_of(partition.max_time) > 0
        assert partition.max_gpus_per_node is None or partition.max_gpus_per_node <= site.node.gpus
    if site.account.example:
        assert re.fullmatch(site.account.pattern, site.account.example)
    assert site.cores_per_gpu * site.node.gpus <= len(site.node.usable_cores)
    assert site.work_root.format(account="a", user="u", home="/h").startswith("/")


@pytest.mark.parametrize("name", ALL.names())
def test_every_rule_is_a_pattern_with_words(name: str) -> None:
    rules = ALL.load(name).rules
    assert len({rule.id for rule in rules}) == len(rules)
    for rule in rules:
        assert rule.message.endswith("."), rule.id
        assert rule.do.endswith("."), rule.id
        assert rule.source, rule.id
        assert "#" in rule.source or not re.search(r"recipes$|Guide$", rule.source), rule.id
        # A field that is not there has no text, and no rule may fire on it.
        assert rule.absent or not re.search(rule.matches or "", ""), rule.id


# --- LUMI, as its documentation has it


@pytest.fixture(scope="module")
def lumi() -> Site:
    """The built-in profile of LUMI."""
    return ALL.load("lumi")


def test_lumi_has_56_usable_cores_and_no_other(lumi: Site) -> None:
    node = lumi.node
    union = sum(1 << core for core in node.usable_cores)
    assert union == guide_scripts.UNION_OF_MASKS
    assert frozenset().union(*node.cores_of_gpu) == node.usable_cores
    assert node.gpu_numa == (3, 3, 1, 1, 0, 0, 2, 2)
    assert all(
        {core // 16 for core in cores} == {numa}
        for cores, numa in zip(node.cores_of_gpu, node.gpu_numa, strict=True)
    )


def test_a_whole_lumi_node_is_what_the_guides_scripts_ask_for(lumi: Site) -> None:
    for script in guide_scripts.SCRIPTS:
        asked = script.directives
        assert lumi.partitions[asked["--partition"]].allocation == "node"
        assert int(asked["--gpus-per-node"]) == lumi.node.gpus
        if script.launcher == "srun":
            assert int(asked["--cpus-per-task"]) == lumi.cores_per_gpu
            assert asked["--mem-per-gpu"] == lumi.memory_per_gpu
        else:
            assert int(asked["--cpus-per-task"]) == lumi.cores_per_gpu * lumi.node.gpus
            assert asked["--mem"] == lumi.memory_per_node


def container_of(site: Site, script: guide_scripts.Script) -> Container:
    """Return the generation of a script's era."""
    return site.containers["laif" if script.era == "current" else "legacy"]


@pytest.mark.parametrize("script", guide_scripts.SCRIPTS, ids=lambda s: f"{s.era}-{s.name}")
def test_the_containers_are_those_of_the_guide(lumi: Site, script: guide_scripts.Script) -> None:
    container = container_of(lumi, script)
    # The guide's pull request 115 loads Local-LAIF, which takes the place of `module use`.
    newer = ("module purge", "module load Local-LAIF lumi-aif-singularity-bindings")
    assert container.modules == (newer if script.era == "current" else script.modules)
    assert container.call == script.container_call
    assert Path(container.image).name == Path(script.image).name
    assert (container.torchrun_binding == "numa") is (script.era == "current")
    for name in ("NCCL_SOCKET_IFNAME", "NCCL_NET_GDR_LEVEL"):
        if name in script.exports:
            assert (lumi.environment | container.environment)[name] == script.exports[name]
            assert name not in container.drop_environment
    if "SINGULARITYENV_PREPEND_PATH" in script.exports:
        prepended = container.venv_environment["SINGULARITYENV_PREPEND_PATH"]
        assert prepended == script.exports["SINGULARITYENV_PREPEND_PATH"]


def test_no_container_sets_what_breaks_it(lumi: Site) -> None:
    assert "NCCL_NET_GDR_LEVEL" in lumi.containers["laif"].forbidden_environment
    for container in lumi.containers.values():
        assert not set(container.forbidden_environment) & set(container.environment)
        assert not set(container.forbidden_environment) & set(lumi.environment)
        known = set(lumi.environment) | set(container.environment)
        for variant in container.variants:
            assert set(variant.drop_environment or ()) <= known


def test_miopen_has_folders_of_the_job_on_every_node(lumi: Site) -> None:
    names = ("MIOPEN_CUSTOM_CACHE_DIR", "MIOPEN_USER_DB_PATH")
    folders = {lumi.environment[name] for name in names}
    assert folders == set(lumi.node_directories)
    # /tmp of a shared node is everybody's: they are in the job's own folder there.
    assert all(folder.startswith("${NODE_TMP}/") for folder in folders)


def test_facts_that_documents_contradict_are_marked(lumi: Site) -> None:
    dev = lumi.partitions["dev-g"]
    assert (dev.max_time, dev.max_nodes, dev.max_jobs) == ("3:00:00", 8, 2)
    assert set(lumi.unverified) >= {
        "partitions.dev-g.max_time",
        "partitions.dev-g.max_nodes",
        "partitions.small-g.billing",
    }


def test_a_job_without_a_folder_on_its_nodes_cannot_name_one(lumi: Site) -> None:
    data = lumi.model_dump(mode="json") | {"node_folder": ""}
    with pytest.raises(ValueError, match="needs `node_folder`"):
        Site.model_validate(data)


def test_the_mini_cluster_changes_only_what_a_stand_in_must(lumi: Site) -> None:
    mini = ALL.load("minilumi")
    same = set(Site.model_fields) - {"name", "title", "slurm_version", "hosts", "poll_seconds"}
    own = {"account", "containers", "partitions", "environment", "preflight", "launchers", "mpi"}
    for key in same - own:
        assert getattr(mini, key) == getattr(lumi, key), key
    # Its GPUs are names only, and its ranks share two cores.
    assert (lumi.preflight, mini.preflight) == ("warn", "off")
    assert mini.environment == lumi.environment | {"TRAINER_DEVICE": "cpu"}
    assert mini.partitions.items() >= lumi.partitions.items()
    # LUMI starts MPI programs by srun alone.
    assert lumi.mpi is None and set(mini.launchers) - set(lumi.launchers) == {"mpirun"}
    added = {"scrap-g", "spare-g"}  # jobs there can be preempted, which LUMI does to nobody
    assert mini.partitions.keys() - lumi.partitions.keys() == added
    for name, container in mini.containers.items():
        assert container.torchrun_binding == "none"
        changed = {"torchrun_binding": "none", "python_version": "3.11"}  # Debian 12's
        whole = lumi.containers[name].model_copy(update=changed)
        assert container == whole
    assert mini.hosts.login == "minilumi"
    assert mini.hosts.fingerprints == {}


def test_a_site_in_a_few_words() -> None:
    today, puhti = date(2026, 8, 1), ALL.load("puhti")
    assert puhti.summary(today) == "Puhti: closed on 2026-07-31; use roihu"
    assert puhti.summary(date(2026, 7, 30)) == "Puhti: 4 x NVIDIA V100 per node"
    assert all(len(ALL.load(name).summary(today)) <= 60 for name in Sites([BUILT_IN]).names())


def test_a_text_counts_in_the_place_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "lumi.yaml"
    path.write_text("extends: lumi\npoll_seconds: 77\n")
    built_in = Sites([BUILT_IN]).load("lumi").poll_seconds
    found = Sites([tmp_path, BUILT_IN], {path: "extends: lumi\ntitle: mine\n"}).load("lumi")
    assert (found.title, found.poll_seconds) == ("mine", built_in)
    with pytest.raises(InputError, match=f"{re.escape(str(path))}:2: poll"):
        Sites([tmp_path, BUILT_IN], {path: "extends: lumi\npoll_seconds: x\n"}).load("lumi")


def partition(**fields: Any) -> Partition:
    """Return a partition that bills nothing."""
    base = {
        "max_time": "12:00:00",
        "max_nodes": 100,
        "allocation": "node",
        "billing": {"kind": "sum"},
    }
    return Partition.model_validate(base | fields)


def test_without_sizes_every_job_has_the_one_limit() -> None:
    assert [partition().max_time_for(nodes) for nodes in (1, 100, 200)] == ["12:00:00"] * 3


def test_larger_jobs_may_have_more_time() -> None:
    sizes = [{"nodes": 91, "max_time": "2:00:00"}, {"nodes": 183, "max_time": "6:00:00"}]
    found = partition(max_time_of=sizes)
    times = [found.max_time_for(nodes) for nodes in (1, 91, 92, 183, 184)]
    assert times == ["2:00:00", "2:00:00", "6:00:00", "6:00:00", "12:00:00"]


def test_node_minutes_are_shared_by_the_nodes() -> None:
    found = partition(max_node_minutes=90, max_time="1:30:00")
    assert [found.max_time_for(nodes) for nodes in (1, 2, 4, 91)] == ["1:30:00", "45", "22", "1"]


@pytest.mark.parametrize("name", ["", "acc debug", "-acc", "acc\n#SBATCH --x", "a;b"])
def test_a_name_that_slurm_cannot_have_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="must be one word"):
        partition(slurm_partition=name)


def test_a_request_for_gpus_has_only_their_number_in_braces() -> None:
    assert partition(gpu_request="--gres=gpu:v100:{gpus}").gpu_request
    with pytest.raises(ValidationError, match="nodes"):
        partition(gpu_request="--gpus={nodes}")


@pytest.mark.parametrize(
    ("version", "inherits", "result"),
    [("21.08.8", None, True), ("22.05.8", None, False), ("23.02.7", None, False),
     ("23.11.0", None, True), ("26.05", None, True), ("", None, None), ("24.11", False, False),
     ("25.05.9", True, True)],
)  # fmt: skip
def test_slurms_version_tells_whether_srun_inherits_cores_if_the_profile_does_not(
    version: str, inherits: bool | None, result: bool | None
) -> None:
    lumi = Sites([BUILT_IN]).load("lumi")
    update = {"slurm_version": version, "srun_inherits_cpus": inherits}
    assert lumi.model_copy(update=update).srun_has_cpus is result


def test_no_key_admits_that_it_has_no_effect() -> None:
    text = json.dumps(described_schema(Site))
    assert "visible_gpus" in text and not re.search(r"not used yet|nothing reads", text)
