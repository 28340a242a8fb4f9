"""A node's report: what it changes in a profile, what it leaves, and hostile ones."""

import re

import pytest

from lumitui.remote.site.container import Container
from lumitui.remote.site.meters import GpuReadings
from lumitui.remote.site.profile import Site
from lumitui.remote.survey.profile.node_facts import NodeFacts, compare, shares
from lumitui.remote.survey.profile.node_report import read
from tests.support.attacks.spoilt_text import survive, worse
from tests.support.replies.surveyed import NODE, SURVEY, site_of, text_from


@pytest.fixture(scope="module")
def site() -> Site:
    return site_of(text_from(SURVEY))


def values(found: NodeFacts) -> dict[str, object]:
    return {".".join(one.place): one.value for one in found.changes}


def test_a_node_gives_the_profile_its_core_lists(site: Site) -> None:
    measured = compare(read(NODE), site)
    found = values(measured)
    assert found["node.gpu_cores"] == ("13-23", "1-11", "37-47", "25-35")
    assert found["node.gpu_numa"] == ("1", "0", "3", "2")
    assert found["node.gpu_bus"] == ("17", "31", "b1", "ca")
    assert found["node.no_gpu_cores"] is None
    assert "internet_on_compute_nodes" not in found  # the guess was right ...
    assert ("internet_on_compute_nodes",) in measured.confirmed  # ... and is one no more
    assert "node_folder" not in found


@pytest.mark.parametrize(
    ("old", "new", "key", "value"),
    [
        ("internet no", "internet yes", "internet_on_compute_nodes", "true"),
        ("internet no", "internet proxy", "internet_on_compute_nodes", "true"),
        ("CPUSpecList=0-1,24-25,48-49,72-73", "CPUSpecList=0,48", "node.reserved_cores", "0"),
        ("arch x86_64", "arch aarch64", "node.architecture", "aarch64"),
        ("gpu 0000:31:00.0", "gpu 0001:17:00.0", "node.gpu_bus",
         ("0000:17:00.0", "0001:17:00.0", "0000:b1:00.0", "0000:ca:00.0")),
        ("/tmp ext2/ext3 58329148 yes", "/tmp tmpfs 58329148 yes", "node.local_disk",
         "55 GiB free in $TMPDIR (ext2/ext3)"),
        ("ext2/ext3", "lustre", "node.local_disk",
         "none; /tmp is in memory and counts as the job's memory"),
        ("domain 3", "nvidia 00000000:17:00.0, 81920, Disabled, NVIDIA A100-SXM4-80GB\ndomain 3",
         "node.gpu_memory_gib", "80"),
        ("domain 3", "amd device,VRAM Total Memory (B),Used\namd card0,68702699520,1\ndomain 3",
         "node.gpu_memory_gib", "63"),
        ("0x10de", "0x1002", "visible_gpus", "ROCR_VISIBLE_DEVICES"),
        ("threads 0\nthreads 1\n", "".join(f"threads {cpu}\n" for cpu in range(96)),
         "node.cores", "96"),
    ],
)  # fmt: skip
def test_what_a_node_says_otherwise_is_proposed(
    site: Site, old: str, new: str, key: str, value: object
) -> None:
    assert old in NODE
    assert values(compare(read(NODE.replace(old, new)), site))[key] == value


GPUS = "".join(
    f"nvidia 0:{bus}:00.0, 81920, Disabled, NVIDIA A100-SXM4-80GB, {watts}\n"
    for bus, watts in (("17", "52.31"), ("31", "61.05"))
)


def test_a_node_gives_the_profile_the_power_of_an_idle_gpu(site: Site) -> None:
    found = values(compare(read(f"{NODE}\n{GPUS}"), site))
    assert str(found["gpu_readings.command"]).startswith("nvidia-smi --query-gpu=index,power.draw")
    assert found["gpu_readings.prints"] == "nvidia-smi"
    assert found["gpu_readings.idle_watts"] == "100"


@pytest.mark.parametrize(("old", "new"), [("52.31", "[N/A]"), ("Disabled", "Enabled")])
def test_only_measured_power_of_a_whole_gpu_is_proposed(site: Site, old: str, new: str) -> None:
    unclear = GPUS.replace(old, new).replace("61.05", "[N/A]")
    found = values(compare(read(f"{NODE}\n{unclear}"), site))
    assert not [key for key in found if key.startswith("gpu_readings")]


def test_readings_of_the_users_own_stay(site: Site) -> None:
    readings = GpuReadings(command="own", prints="nvidia-smi", idle_watts=90)
    own = site.model_copy(update={"gpu_readings": readings})
    assert not [key for key in values(compare(read(f"{NODE}\n{GPUS}"), own)) if "readings" in key]
    unsure = own.model_copy(update={"unverified": ("gpu_readings.idle_watts",)})
    found = values(compare(read(f"{NODE}\n{GPUS}"), unsure))
    assert {key for key in found if "readings" in key} == {"gpu_readings.idle_watts"}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (" 1 12-23,60-71 ", " 1 0-23,48-71 ", "cores local to one GPU are also local to others"),
        (" 1 12-23,60-71 ", " -1 0-95 ", "does not report which cores are near GPU 0 (memory"),
        ("12-23,60-71", "", "reports no local cores for some"),
        ("gpu 0", "nothing 0", "No driver reports a GPU"),
        ("domain 3", "nvidia 0:17:00.0, 81920, Enabled, A100\ndomain 3", "MIG divides the GPUs"),
        ("done\n", "", "incomplete"),
        ("gpu 0000:ca:00.0 2 24-35,72-83 0x10de\n", "", "has 3 GPUs, but the profile has 4"),
    ],
)
def test_what_cannot_be_measured_is_said_and_not_guessed(
    site: Site, old: str, new: str, words: str
) -> None:
    assert old in NODE
    found = compare(read(NODE.replace(old, new)), site)
    assert any(words in note for note in found.notes)
    if "incomplete" not in words and "3 GPUs" not in words:
        assert "node.gpu_cores" not in values(found)


@pytest.mark.parametrize(("domain", "cores"), [("-1", "0-95"), ("0", "0-95"), ("-1", "0-11")])
def test_a_gpu_without_a_place_has_no_measured_cores(site: Site, domain: str, cores: str) -> None:
    text = re.sub(r"(gpu \S+) \d \S+", rf"\1 {domain} {cores}", NODE)
    for profile in (site, measured_before(site)):
        found = compare(read(text), profile)
        assert not {"node.gpu_cores", "node.gpu_numa", "node.no_gpu_cores"} & set(values(found))
        assert not {("node", "gpu_cores"), ("node", "gpu_numa")} & set(found.confirmed)
        assert any("GPU 0, 1, 2, 3 (memory domain -1" in note for note in found.notes)


def test_a_node_of_one_domain_has_all_cores_near_to_every_gpu(site: Site) -> None:
    text = re.sub(r"(gpu \S+) \d \S+", r"\1 0 0-95", NODE)
    text = re.sub(r"domain 0 .*\ndomain 1 .*\ndomain 2 .*\ndomain 3 .*", "domain 0 0-95", text)
    assert values(compare(read(text), site))["node.gpu_numa"] == ("0",) * 4


def measured_before(site: Site) -> Site:
    lists = ("13-23", "1-11", "37-47", "25-35")
    node = site.node.model_copy(update={"gpu_cores": lists, "gpu_numa": (1, 0, 3, 2)})
    return site.model_copy(update={"node": node})


def test_cores_that_are_near_no_gpu_are_still_requested(site: Site) -> None:
    text = NODE.replace("gpu 0000:31:00.0 0 0-11,48-59", "gpu 0000:31:00.0 1 12-23,60-71")
    facts = compare(read(text), site)
    found = values(facts)
    assert found["node.gpu_cores"] == ("13-17", "18-22", "37-41", "25-29")
    assert "cores_per_gpu" not in found and "not near any GPU, so masks leave" in str(facts.notes)
    greedy = site.model_copy(update={"cores_per_gpu": 12})  # a node has 44 for 4 GPUs
    assert values(compare(read(text), greedy))["cores_per_gpu"] == "11"


def test_what_a_node_lacks_is_said(site: Site) -> None:
    notes = " ".join(compare(read(NODE), site).notes)
    assert "The node lacks python3" in notes and "how to use an image" in notes
    assert "internet: none." in notes and "node.gpu_memory_gib is a guess" in notes
    has = compare(read(NODE.replace("python ", "python 3.11.2")), site)
    assert "lacks python3" not in " ".join(has.notes)


@pytest.mark.parametrize(("reads", "default"), [("yes", None), ("no", "none")])
def test_a_default_container_whose_image_no_node_has_is_one_no_more(
    site: Site, reads: str, default: str | None
) -> None:
    container = Container(image="/appl/torch.sif", call=("singularity", "run"))
    having = site.model_copy(update={"containers": {"own": container}, "default_container": "own"})
    measured = compare(read(NODE.replace("done", f"image {reads} /appl/torch.sif\ndone")), having)
    assert values(measured).get("default_container") == default
    assert values(measured).get("containers.own.image") == ("" if reads == "no" else None)
    assert ("containers", "own", "image") in measured.confirmed


def test_the_profile_keeps_whether_a_node_has_python(site: Site) -> None:
    key, has_it = "python_on_compute_nodes", NODE.replace("python ", "python 3.11.2")
    lacking = site.model_copy(update={key: False})
    assert values(compare(read(NODE), site))[key] == "false"
    assert key not in values(compare(read(has_it), site))
    assert values(compare(read(has_it), lacking))[key] == "true"
    for own in ({"python": "/opt/python/bin/python3"}, {"modules": ("module load python",)}):
        assert key not in values(compare(read(NODE), site.model_copy(update=own)))
    # A guess of the survey is settled, also beside a module.
    guess = lacking.model_copy(update={**own, "unverified": (key,)})
    assert values(compare(read(has_it), guess))[key] == "true"
    assert (key,) in compare(read(NODE), guess).confirmed


def test_a_job_of_a_whole_node_shows_reserved_cores_where_slurm_does_not(site: Site) -> None:
    said = next(line for line in NODE.splitlines() if line.startswith("slurm "))
    text = NODE.replace(said, "slurm \njob 1-47,49-95")
    assert values(compare(read(text), site))["node.reserved_cores"] == "0"


def test_gpus_of_one_domain_share_its_cores_in_order() -> None:
    near, far = frozenset(range(8)), frozenset(range(8, 13))
    parts, why = shares([near, far, near])
    assert [sorted(part) for part in parts] == [[0, 1, 2, 3], [8, 9, 10, 11], [4, 5, 6, 7]]
    assert not why
    # A single socket: every core is near to all of them.
    assert [min(part) for part in shares([frozenset(range(32))] * 4)[0]] == [0, 8, 16, 24]
    assert shares([frozenset({1})] * 2) == ((), "there are fewer cores than GPUs")


@pytest.mark.parametrize("count", [300, pytest.param(5000, marks=pytest.mark.slow)])
def test_spoilt_reports_change_nothing_that_does_not_fit(site: Site, count: int) -> None:
    survive(worse([NODE.encode()], count),
            lambda text: compare(read(text.decode("utf-8", "replace")), site))  # fmt: skip
