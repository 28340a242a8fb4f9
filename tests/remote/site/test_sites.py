"""Profiles are found, inherited and refused."""

import re
from pathlib import Path

import pytest

from lumitui.remote.site.errors import InputError
from lumitui.remote.site.sites import BUILT_IN, Sites, merge

SMALL = """
title: Small
work_root: /scratch/{user}
cores_per_gpu: 2
node:
  cores: 8
  reserved_cores: 0,4
  memory_gib: 16
  gpus: 2
  gpu: GPU
  gpu_memory_gib: 8
  gpu_cores: [1-3, 5-7]
partitions:
  gpu:
    max_time: 1-00:00:00
    max_nodes: 4
    allocation: node
    billing: {kind: node, per_node_hour: 1}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the profile `small`."""
    (tmp_path / "small.yaml").write_text(SMALL)
    return tmp_path


def refused(folder: Path, name: str, text: str) -> str:
    """Return the message about a profile of `text`."""
    (folder / f"{name}.yaml").write_text(text)
    with pytest.raises(InputError) as caught:
        Sites([folder]).load(name)
    assert caught.value.hint
    return caught.value.message


# --- inheritance


def test_a_mapping_is_laid_on_key_by_key_and_null_removes() -> None:
    base = {"a": {"x": 1, "y": 2}, "b": [1, 2], "c": 3, "d": {"z": 1}}
    over = {"a": {"y": 5, "w": 6}, "b": [9], "c": None, "d": 4, "e": {"v": None, "u": 1}}
    assert merge(base, over) == {"a": {"x": 1, "y": 5, "w": 6}, "b": [9], "d": 4, "e": {"u": 1}}
    assert base == {"a": {"x": 1, "y": 2}, "b": [1, 2], "c": 3, "d": {"z": 1}}


def test_a_profile_inherits_what_it_does_not_say(folder: Path) -> None:
    (folder / "mine.yaml").write_text(
        "extends: small\ntitle: Mine\npartitions: {gpu: {max_nodes: 9}}\nnode: {gpu_cores: null}\n"
    )
    mine = Sites([folder]).load("mine")
    assert (mine.name, mine.title, mine.cores_per_gpu) == ("mine", "Mine", 2)
    assert mine.partitions["gpu"].max_nodes == 9
    assert mine.partitions["gpu"].max_time == "1-00:00:00"
    assert mine.node.gpu_cores == ()


def test_a_profile_is_called_as_its_file_is(folder: Path) -> None:
    message = refused(folder, "mine", "extends: small\nname: small\n")
    assert "mine.yaml:2" in message
    assert "'small'" in message


def test_a_persons_profile_hides_the_built_in_one_and_may_extend_it(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    own = tmp_path_factory.mktemp("own")
    (own / "small.yaml").write_text("extends: small\npoll_seconds: 70\n")
    sites = Sites([own, folder])
    assert sites.names() == ["small"]
    assert sites.path("small") == own / "small.yaml"
    assert (sites.load("small").poll_seconds, sites.load("small").title) == (70, "Small")


@pytest.mark.parametrize("loose", ["system", "system/small.yaml"])
def test_a_shared_profile_that_every_user_may_change_is_refused(tmp_path: Path, loose: str) -> None:
    """Its modules and commands would run as the user who reads it."""
    own, system = tmp_path / "own", tmp_path / "system"
    for folder in (own, system):
        folder.mkdir()
        (folder / "small.yaml").write_text("extends: small\n" if folder == own else SMALL)
    sites = Sites([own, system])
    assert sites.load("small").title == "Small"
    (tmp_path / loose).chmod(0o777)
    with pytest.raises(InputError, match="is writable by every user") as caught:
        sites.load("small")
    assert caught.value.hint == f"Ask its owner to run `chmod o-w {tmp_path / loose}`."
    assert sites.valid() == [] and "skips the site small" in sites.take_warnings()[0]


def test_a_shared_profile_names_nobodys_account_and_login(tmp_path: Path) -> None:
    """Everybody's jobs would be billed to its author's project."""
    own, system = tmp_path / "own", tmp_path / "system"
    person = "account: {required: true, default: p1}\nhosts: {login: a.example, user: bob}\n"
    for folder in (own, system):
        folder.mkdir()
        (folder / f"{folder.name}.yaml").write_text(f"{SMALL}{person}")
    sites = Sites([own, system])
    site = sites.load("system")
    assert (site.account.default, site.account.example, site.hosts.user) == ("", "PROJECT", None)
    assert "only an example" in site.account.objection(site.account.example)
    assert (sites.load("own").account.default, sites.load("own").hosts.user) == ("p1", "bob")


def test_the_users_own_profile_may_be_writable(folder: Path) -> None:
    (folder / "small.yaml").chmod(0o666)
    assert Sites([folder]).load("small").title == "Small"


@pytest.mark.parametrize("pause", [".nan", ".inf", "-1", "0", "1e9"])
def test_a_pause_that_would_never_end_or_never_begin_is_refused(folder: Path, pause: str) -> None:
    message = refused(folder, "mine", f"extends: small\npoll_seconds: {pause}\n")
    assert "mine.yaml:2: poll_seconds" in message


@pytest.mark.parametrize(
    ("parent", "own", "pause"),
    [("60", "1", 60), ("60", "'1'", 60), ("60", "90", 90), ("1", "0.5", 1)],
)
def test_no_user_polls_more_often_than_the_systems_profile_allows(
    tmp_path: Path, parent: str, own: str, pause: float
) -> None:
    user, system = tmp_path / "user", tmp_path / "system"
    user.mkdir()
    system.mkdir()
    (system / "small.yaml").write_text(f"{SMALL}poll_seconds: {parent}\n")
    (user / "small.yaml").write_text(f"extends: small\npoll_seconds: {own}\n")
    (user / "mine.yaml").write_text("extends: small\npoll_seconds: 0.2\n")
    sites = Sites([user, system, BUILT_IN])
    assert sites.load("small").poll_seconds == pause
    told = [note for note in sites.load("small").notes if "does not allow" in note]
    assert len(told) == (own.strip("'") in ("1", "0.5"))
    assert sites.load("mine").poll_seconds == float(parent), "not through another profile either"
    assert sites.least_pause("mine") == sites.least_pause("small") == float(parent)
    assert sites.least_pause("lumi") == 0, "no system's profile has its host"
    # Nor through one that hides the system's, or removes its pause.
    (user / "other.yaml").write_text(SMALL)
    for text in (SMALL, "extends: other\n"):
        (user / "small.yaml").write_text(f"{text}poll_seconds: {own}\n")
        assert sites.load("small").poll_seconds == pause
    (user / "small.yaml").write_text("extends: small\npoll_seconds: null\n")
    (system / "small.yaml").write_text(f"{SMALL}poll_seconds: 90\n")
    assert sites.load("small").poll_seconds == 90
    # Nor through one with another name and the same host.
    (system / "small.yaml").write_text(f"{SMALL}poll_seconds: 90\nhosts: {{login: a.example}}\n")
    for host, least in (("Bob@A.example.", 90), ("b.example", 5)):
        text = f"{SMALL}poll_seconds: 5\nhosts: {{login: {host}}}\n"
        (user / "alias.yaml").write_text(text)
        assert sites.load("alias").poll_seconds == least
        assert sites.least_pause("alias") == (90 if least == 90 else 0)
    (system / "small.yaml").write_text("broken: [\n")
    (user / "small.yaml").write_text(f"{SMALL}poll_seconds: 5\n")
    assert sites.load("small").poll_seconds == 5


def test_the_pause_that_the_systems_profile_has_by_default_counts(tmp_path: Path) -> None:
    user, system = tmp_path / "user", tmp_path / "system"
    user.mkdir()
    system.mkdir()
    (system / "small.yaml").write_text(SMALL)
    (user / "mine.yaml").write_text("extends: small\npoll_seconds: 15\n")
    assert Sites([user, system, BUILT_IN]).load("mine").poll_seconds == 60


def test_the_pause_of_a_bundled_or_an_own_profile_may_be_shortened(folder: Path) -> None:
    (folder / "small.yaml").write_text(f"{SMALL}poll_seconds: 60\n")
    for parent in ("small", "lumi"):
        (folder / "mine.yaml").write_text(f"extends: {parent}\npoll_seconds: 15\n")
        assert Sites([folder, BUILT_IN]).load("mine").poll_seconds == 15


def test_a_profile_that_comes_later_is_found_and_one_that_goes_is_not(tmp_path: Path) -> None:
    sites = Sites([tmp_path / "later"])
    assert sites.names() == []
    (tmp_path / "later").mkdir()
    (tmp_path / "later" / "small.yaml").write_text(SMALL)
    assert (sites.names(), sites.load("small").title) == (["small"], "Small")
    (tmp_path / "later" / "small.yaml").unlink()
    with pytest.raises(InputError, match="'small' is not a site"):
        sites.load("small")


@pytest.mark.parametrize("others", [{}, {"b": "extends: a\n"}])
def test_a_profile_that_extends_itself_is_refused(folder: Path, others: dict[str, str]) -> None:
    for name, text in others.items():
        (folder / f"{name}.yaml").write_text(text)
    message = refused(folder, "a", f"extends: {'b' if others else 'a'}\n")
    assert "extends itself" in message


def test_an_unknown_profile_is_answered_with_the_known_ones(folder: Path) -> None:
    with pytest.raises(InputError, match="'big' is not a site") as caught:
        Sites([folder]).load("big")
    assert "small" in caught.value.hint
    message = refused(folder, "mine", "title: Mine\nextends: big\n")
    assert f"{folder / 'mine.yaml'}:2: 'big' is not a site" in message


@pytest.mark.parametrize("name", ["smal", "Small", "SMALL"])
def test_a_name_that_is_nearly_right_is_answered_with_the_right_one(
    folder: Path, name: str
) -> None:
    with pytest.raises(InputError) as caught:
        Sites([folder]).load(name)
    assert caught.value.hint.startswith("Did you mean small? The sites are: ")


def test_a_mistake_is_shown_in_the_file_it_is_in(folder: Path) -> None:
    (folder / "base.yaml").write_text(SMALL.replace("max_nodes: 4", "max_nodes: four"))
    message = refused(folder, "mine", "extends: base\npoll_secnds: 3\n")
    assert "mine.yaml:2: poll_secnds: unknown key; did you mean `poll_seconds`?" in message
    assert re.search(r"base\.yaml:16: partitions\.gpu\.max_nodes: ", message)


def test_another_kind_than_the_parents_is_named_at_the_childs_line(folder: Path) -> None:
    (folder / "base.yaml").write_text(SMALL)
    child = "extends: base\npartitions:\n  gpu:\n    billing:\n      kind: sum\n"
    message = refused(folder, "mine", child + "      per_gpu_hour: 1\n")
    assert "mine.yaml:5: partitions.gpu.billing.kind: 'sum' differs from the kind" in message
    assert "write `per_node_hour: null` beside it" in message and "did you mean" not in message
    (folder / "mine.yaml").write_text(child + "      per_node_hour: null\n")
    assert Sites([folder]).load("mine").partitions["gpu"].billing.kind == "sum"


def test_a_key_of_another_kind_than_the_inherited_one_is_wrong_where_it_is(folder: Path) -> None:
    (folder / "base.yaml").write_text(SMALL)
    child = "extends: base\npartitions:\n  gpu:\n    billing:\n      per_gpu_hour: 1\n"
    assert "mine.yaml:5: partitions.gpu.billing.per_gpu_hour: this key belongs to another kind" in (
        refused(folder, "mine", child)
    )


# --- what a profile may not say


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[1-3, 5-7]", "[0-3, 5-7]", "GPU 0: 0 are reserved or do not exist"),
        ("[1-3, 5-7]", "[1-3, 5-8]", "GPU 1: 8 are reserved or do not exist"),
        ("[1-3, 5-7]", "[1-3, 3]", "GPU 1: [3] belong to another GPU"),
        ("[1-3, 5-7]", "[1-3]", "gpu_cores lists 1 GPUs, but the node has 2"),
        ("[1-3, 5-7]", "[3-1, 5-7]", "runs backwards"),
        ("[1-3, 5-7]", "[1-3, true]", "gpu_cores.1: true is not text; put it in quotes"),
        ("gpus: 2", "gpus: 2\n  gpu_numa: [0]", "gpu_numa lists 1 GPUs"),
        ("gpus: 2", "gpus: 2\n  gpu_bus: [0a, 0b, 0c]", "gpu_bus lists 3 GPUs"),
        ("reserved_cores: 0,4", "reserved_cores: 0;4", "not a list of cores"),
        ("1-00:00:00", "one day", "is not a time"),
        ("1-00:00:00", "10", "partitions.gpu.max_time: 10 is not text; put it in quotes"),
        ("max_nodes: 4", "max_nodes: 4\n    grows_to: more", "Add that partition, or correct"),
        ("title: Small", "default_container: x\ntitle: a", "'x' is not in containers"),
        ("kind: node", "kind: nod", "partitions.gpu.billing"),
        ("per_node_hour: 1", "per_node_hours: 1", "did you mean `per_node_hour`?"),
        ("per_node_hour: 1", "", "partitions.gpu.billing.per_node_hour: this key is required"),
        ("title: Small", "", "title: this key is required"),
        ("allocation: node", "allocation: nodes", "partitions.gpu.allocation"),
        ("work_root: /scratch/{user}", "work_root: ~/runs", "work_root: '~/runs' must be a full"),
        ("work_root: /scratch/{user}", "work_root: runs", "work_root: 'runs' must be a full path"),
        ("work_root: /scratch/{user}", 'work_root: ""', "work_root: '' must be a full path"),
        ("work_root: /scratch/{user}", "work_root: /", "work_root: '/' must be a full path"),
        ("work_root: /scratch/{user}", "work_root: '{user}/a'", "must be a full path"),
        ("work_root: /scratch/{user}", "work_root: '{home}a'", "must be a full path"),
        ("work_root: /scratch/{user}", "work_root: '{home}/a'", "is unknown before the login"),
        ("title: Small", "node_folder: ~/a\ntitle: a", "node_folder"),
        ("title: Small", "node_directories: [a]\ntitle: a", "'a' must be a full path"),
        ("title: Small", "hosts: {login: ''}\ntitle: a", "hosts.login: it is empty"),
        ("title: Small", "hosts: {login: -oX}\ntitle: a", "hosts.login: '-oX' begins with `-`"),
        (
            "kind: node",
            "kind: sum",
            "per_node_hour: this key belongs to another kind; `kind: sum` does",
        ),
        (
            "title: Small",
            "launchers: [magic]\ntitle: a",
            "'magic' is not a launcher; the launchers are accelerate",
        ),
        ("title: Small", "launchers: []\ntitle: a", "launchers: "),
    ],
)
def test_a_profile_with_a_mistake_is_refused(folder: Path, old: str, new: str, words: str) -> None:
    assert SMALL.count(old) == 1
    assert words in refused(folder, "wrong", SMALL.replace(old, new))


@pytest.mark.parametrize(
    "line",
    [
        "node_folder: ''",
        "node_folder: ${TMPDIR:-/tmp}",
        "node_directories: [$TMPDIR/a, /b]",
        "scheduler: process\nwork_root: '{home}/a'",
        "scheduler: process\nwork_root: '{home}'",
    ],
)
def test_whole_paths_and_variables_are_taken(folder: Path, line: str) -> None:
    (folder / "mine.yaml").write_text(f"extends: small\n{line}\n")
    assert Sites([folder]).load("mine")


def test_reserved_cores_may_be_none(folder: Path) -> None:
    (folder / "all.yaml").write_text(SMALL.replace("0,4", '""'))
    assert Sites([folder]).load("all").node.usable_cores == frozenset(range(8))


def test_own_profiles_are_those_that_did_not_come_with_the_program(folder: Path) -> None:
    assert Sites([BUILT_IN]).own() == []
    (folder / "lumi.yaml").write_text("extends: lumi\nhosts: {user: me}\n")
    assert Sites([folder, BUILT_IN]).own() == ["lumi", "small"]


# --- the default container

ONE = "containers:\n  own: {image: /images/a.sif, call: [singularity, run]}\n"


@pytest.mark.parametrize(
    ("more", "default"),
    [
        (ONE, "own"),
        (f"{ONE}  other: {{image: /images/b.sif, call: [singularity, run]}}\n", "own"),
        (f"{ONE}default_container: none\n", None),
        ("", None),
    ],
)
def test_the_first_container_is_the_default_unless_the_profile_says_otherwise(
    folder: Path, more: str, default: str | None
) -> None:
    (folder / "mine.yaml").write_text(f"{SMALL}{more}")
    assert Sites([folder]).load("mine").default_container == default


@pytest.mark.parametrize("name", ["alps", "karolina", "leonardo", "roihu"])
def test_a_bundled_site_whose_jobs_bring_their_images_has_no_default_container(name: str) -> None:
    site = Sites([BUILT_IN]).load(name)
    assert site.containers and site.default_container is None


def test_a_site_with_fewer_partitions_than_its_profile_has_no_larger_one() -> None:
    lumi = Sites([BUILT_IN]).load("lumi")
    (name,) = [name for name, one in lumi.partitions.items() if name == "small-g" and one.grows_to]
    alone = lumi.model_copy(update={"partitions": {name: lumi.partitions[name]}})
    assert [key for key, _ in lumi.partitions_from(name)] != [name]
    assert [key for key, _ in alone.partitions_from(name)] == [name]


@pytest.mark.parametrize(
    ("name", "shared", "own"),
    [
        ("lumi", ["/flash/project_1/x", "/pfs/lustrep1", "/projappl/a"], ["/tmp/x", "/flashy"]),
        ("mn5", ["/gpfs/projects/a"], ["/scratch/tmp", "$TMPDIR/x"]),
        ("leonardo", ["/leonardo_work/a", "/leonardo_scratch/a", "/leonardo/home/a"], ["/flash/a"]),
        ("alps", ["/capstor/a", "/iopsstor/a"], ["/dev/shm/a"]),
        ("laptop", [], ["/home/me"]),
    ],
)  # fmt: skip
def test_a_profile_says_which_folders_all_nodes_share(
    name: str, shared: list[str], own: list[str]
) -> None:
    site = Sites([BUILT_IN]).load(name)
    assert all(map(site.is_shared, shared))
    assert not any(map(site.is_shared, own))
