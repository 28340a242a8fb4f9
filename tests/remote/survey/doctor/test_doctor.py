"""doctor: parsers on real answers with one thing changed, and the mini cluster examined."""

import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from lumitui.app.runs import Runs
from lumitui.remote.connect import connect
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.profile import Site
from lumitui.remote.site.sites import BUILT_IN, Sites
from lumitui.remote.survey.doctor import cluster_checks, examine
from lumitui.remote.transport.local import Local
from tests.support.program.home import Home
from tests.support.servers.transports import FixedAnswer

# Real answers of the mini cluster (Slurm 22.05), shortened to the keys that are read.
PARTITIONS = """\
PartitionName=standard-g AllowGroups=ALL Default=NO MaxNodes=1024 MaxTime=2-00:00:00 \
PriorityTier=2 Nodes=nid[005001-005008] OverSubscribe=EXCLUSIVE State=UP TotalNodes=8
PartitionName=small-g AllowGroups=ALL MaxNodes=4 MaxTime=3-00:00:00 OverSubscribe=NO State=UP \
TotalNodes=8
PartitionName=dev-g AllowGroups=ALL MaxNodes=8 MaxTime=03:00:00 OverSubscribe=NO State=UP \
TotalNodes=49
"""
NODE = (
    "NodeName=nid005001 Arch=x86_64 CoresPerSocket=64 CPUAlloc=0 CPUEfctv=112 CPUTot=128 "
    "Gres=gpu:mi250:8 RealMemory=491520 CoreSpecCount=8 "
    "CPUSpecList=0-1,16-17,32-33,48-49,64-65,80-81,96-97,112-113 State=IDLE ThreadsPerCore=2\n"
)


@pytest.fixture(scope="module")
def site() -> Site:
    return Sites([BUILT_IN]).load("lumi")


def states(checks: Iterable[Finding]) -> set[str]:
    return {check.severity for check in checks}


def test_a_profile_that_fits_is_ok(site: Site) -> None:
    checks = [*cluster_checks.partitions(PARTITIONS, site), *cluster_checks.node(NODE, site)]
    assert states(checks) == {"note"}, checks
    assert len(checks) == 4


def test_whole_nodes_are_understood_as_slurm_26_writes_them(site: Site) -> None:
    text = PARTITIONS.replace("OverSubscribe=EXCLUSIVE", "Exclusive=NODE OverSubscribe=NO")
    assert states(list(cluster_checks.partitions(text, site))) == {"note"}


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("MaxTime=03:00:00", "MaxTime=02:00:00", "max_time 02:00:00"),
        ("MaxNodes=8", "MaxNodes=4", "max_nodes 4"),
        ("OverSubscribe=EXCLUSIVE", "OverSubscribe=NO", "allocation shared"),
        (
            "State=UP TotalNodes=8\nPartitionName=small-g",
            "State=DOWN\nPartitionName=small-g",
            "is D",
        ),
        (
            "PartitionName=small-g",
            "PartitionName=small-g PreemptMode=REQUEUE PriorityTier=1 Nodes=nid005002",
            "preempts true; the profile has false",
        ),
        (
            "Default=NO",
            "Default=YES",
            "a partition is the default; the profile has partition_required: true",
        ),
        (  # 4 nodes are all
            "MaxNodes=8 MaxTime=03:00:00 OverSubscribe=NO State=UP TotalNodes=49",
            "MaxNodes=1024 MaxTime=03:00:00 OverSubscribe=NO State=UP TotalNodes=4",
            "max_nodes 4; the profile has 8",
        ),
    ],
)
def test_another_limit_of_a_partition_is_shown(site: Site, old: str, new: str, found: str) -> None:
    assert old in PARTITIONS
    checks = list(cluster_checks.partitions(PARTITIONS.replace(old, new), site))
    (wrong,) = [check for check in checks if check.severity != "note"]
    assert wrong.severity == "warning"
    assert wrong.message.startswith(found)
    assert wrong.do


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("MaxTime=03:00:00", "MaxTime=UNLIMITED", "max_time UNLIMITED"),
        ("MaxTime=03:00:00", "MaxTime=1-00:00:00", "max_time 1-00:00:00"),
        ("MaxNodes=8", "MaxNodes=16", "max_nodes 16"),
        ("MaxNodes=8", "MaxNodes=UNLIMITED", "max_nodes 49"),
    ],
)
def test_a_limit_stricter_than_slurms_is_a_policy(
    site: Site, old: str, new: str, found: str
) -> None:
    checks = list(cluster_checks.partitions(PARTITIONS.replace(old, new), site))
    assert states(checks) == {"note"}
    assert any(one.message.startswith(f"{found}; the profile allows less: ") for one in checks)
    down = PARTITIONS.replace(old, new).replace("State=UP", "State=DOWN")
    assert {one.message for one in cluster_checks.partitions(down, site)} == {"is DOWN"}


@pytest.mark.parametrize(
    ("limit", "total", "severity"),
    [
        ("MaxNodes=1024", "TotalNodes=8", "note"),  # what `init --host` makes of it
        ("MaxNodes=1024 QoS=dev", "TotalNodes=49", "note"),  # a QOS has the limits
        ("MaxNodes=4 QoS=dev", "TotalNodes=8", "warning"),
    ],
)
def test_all_nodes_or_a_qos_may_limit_a_job_below_its_partition(
    site: Site, limit: str, total: str, severity: str
) -> None:
    text = PARTITIONS.replace("MaxNodes=8", limit).replace("TotalNodes=49", total)
    checks = {check.rule: check for check in cluster_checks.partitions(text, site)}
    assert checks["partition dev-g"].severity == severity


def test_a_partition_that_is_not_there_fails_and_the_others_are_named(site: Site) -> None:
    checks = {
        c.rule: c for c in cluster_checks.partitions(PARTITIONS.replace("dev-g", "debug"), site)
    }
    assert checks["partition dev-g"].severity == "error"
    assert "debug" in checks["partition dev-g"].message


def test_a_qos_is_looked_for_in_slurms_own_partition() -> None:
    text = (
        "PartitionName=acc MaxTime=3-00:00:00 MaxNodes=UNLIMITED TotalNodes=1120 State=UP\n"
        "PartitionName=accinteractive MaxTime=02:00:00 MaxNodes=1 TotalNodes=4 State=UP\n"
    )
    mn5 = Sites([BUILT_IN]).load("mn5")
    assert states(list(cluster_checks.partitions(text, mn5))) == {"note"}
    checks = {c.rule: c for c in cluster_checks.partitions(text.replace("accinter", "other"), mn5)}
    assert checks["partition acc_interactive"].severity == "error"
    assert checks["partition acc_debug"].severity == "note"


def test_no_answer_of_scontrol_fails_with_its_words(site: Site) -> None:
    (check,) = cluster_checks.partitions("slurm_load_partitions: Connection refused\n", site)
    assert (check.severity, "Connection refused" in check.message) == ("error", True)


@pytest.mark.parametrize(
    ("old", "new", "name", "severity"),
    [
        ("gpu:mi250:8", "gpu:mi250:4", "gpus", "error"),
        ("gpu:mi250:8", "(null)", "gpus", "error"),
        ("CPUTot=128", "CPUTot=64", "cores", "error"),
        ("RealMemory=491520", "RealMemory=262144", "memory_gib", "warning"),
        ("RealMemory=491520", "RealMemory=524288", "memory_gib", "note"),
        ("0-1,16-17", "2-3,16-17", "reserved_cores", "warning"),
        ("gpu:mi250:8", "gpu:a100:8", "gres_types", "warning"),
    ],
)
def test_another_shape_of_the_node_is_shown(
    site: Site, old: str, new: str, name: str, severity: str
) -> None:
    assert old in NODE
    (check,) = cluster_checks.node(NODE.replace(old, new), site)
    assert (check.rule, check.severity) == (f"node nid005001 {name}", severity)


@pytest.mark.parametrize(("types", "wrong"), [(None, False), (("mi250",), False), ((), True)])
def test_types_that_the_profile_denies_are_shown(
    site: Site, types: tuple[str, ...] | None, wrong: bool
) -> None:
    other = site.node.model_copy(update={"gres_types": types})
    (check,) = cluster_checks.node(NODE, site.model_copy(update={"node": other}))
    assert ("[mi250]; the profile has []" in check.message) is wrong


def test_reserved_cores_may_be_numbered_thread_after_thread(site: Site) -> None:
    other = "CPUSpecList=0,8,16,24,32,40,48,56,64,72,80,88,96,104,112,120 "
    text = NODE.replace(NODE[NODE.index("CPUSpecList") : NODE.index("State")], other)
    assert states(list(cluster_checks.node(text, site))) == {"note"}


def test_a_node_is_asked_for_by_the_partitions_name_where_the_entry_is_a_qos() -> None:
    mn5 = Sites([BUILT_IN]).load("mn5")
    name, first = next(iter(mn5.partitions.items()))
    assert first.slurm_partition and first.slurm_partition != name
    asked = [
        row
        for question in examine.questions(mn5)
        for row in question.sh.splitlines()
        if "partition -o" in row
    ]
    assert f"show partition -o {first.slurm_partition} " in asked[-1]


def test_missing_tools_images_and_modules_are_shown(site: Site) -> None:
    assert states(cluster_checks.tools("", site)) == {"note"}
    assert [check.message for check in cluster_checks.tools("sacct\n", site)] == ["missing: sacct"]
    legacy, laif = site.containers["legacy"].image, site.containers["laif"].image
    found = {c.rule: c.severity for c in cluster_checks.images(f"{legacy}\n", site)}
    assert found == {"image laif": "note", "image legacy": "warning"}
    (seen,) = (c for c in cluster_checks.images(f"{legacy}\n", site) if c.severity == "note")
    assert seen.message.startswith(f"{laif} (on the login node;")
    found = {c.rule: c.severity for c in cluster_checks.images(f"{laif}\n", site)}
    assert found == {"image laif": "error", "image legacy": "note"}
    assert [c.severity for c in cluster_checks.module_command("", site)] == ["error"]


def test_accounts_are_compared_with_the_profile_and_the_one_asked_for(site: Site) -> None:
    text = "project_462000001|\nproject_462000001|\nother|\n"
    assert cluster_checks.account_names(text) == ("project_462000001", "other")
    assert states(cluster_checks.accounts(text, site)) == {"note"}
    assert states(cluster_checks.accounts(text, site, "project_465000001")) == {"error"}
    assert states(cluster_checks.accounts("other\n", site)) == {"warning"}
    assert states(cluster_checks.accounts("", site)) == {"warning"}


def test_a_newer_slurm_is_a_warning(site: Site) -> None:
    assert states(cluster_checks.version("slurm 25.05.9\n", site)) == {"note"}
    assert states(cluster_checks.version("slurm 25.11.1\n", site)) == {"warning"}
    assert states(cluster_checks.version("sbatch: not found\n", site)) == {"error"}


def test_the_work_root_is_really_written_to(tmp_path: Path) -> None:
    root = f"{tmp_path}/a b/c"
    answer = Local().run(examine.work_script(root)).text
    check = cluster_checks.work_root(answer, root, "lumi")
    assert (check.severity, str(tmp_path) in check.message) == ("note", True)
    assert list(tmp_path.iterdir()) == []
    answer = Local().run(examine.work_script("/proc/1/nothing")).text
    assert cluster_checks.work_root(answer, "/proc/1/nothing", "lumi").severity == "error"
    little = f"{tmp_path}\nwritable\ntmpfs 100 90 10 90% /\n"
    full = cluster_checks.work_root(little, root, "lumi")
    assert (full.severity, "0.0 MiB free" in full.message) == ("warning", True)
    assert "site prune" not in full.do and "`work_root`" in full.do, "nothing is stored there"
    used = cluster_checks.work_root(little, str(tmp_path), "lumi")
    assert "`lumitui site prune lumi`" in used.do


def test_an_option_of_ssh_that_is_read_otherwise_is_shown(site: Site, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("StrictHostKeyChecking no\n")
    hosts = site.hosts.model_copy(update={"ssh_config": str(config)})
    notes = connect(site.model_copy(update={"hosts": hosts}), lambda _: None).notes
    laptop = Sites([BUILT_IN]).load("laptop")
    checks = examine.examine(Local(), laptop, "", lambda _: "/tmp", notes)
    (note,) = [check for check in checks if check.rule == "configuration"]
    assert note.message.startswith("StrictHostKeyChecking ") and "lumitui asks" in note.message
    assert note.severity == "warning" and "option" in note.do


def test_this_machine_is_examined_without_slurm(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LUMITUI_PYTHON", sys.executable)
    checks = {check.rule: check for check in runs.doctor("laptop")}
    assert set(checks) == {"connection", "tools", "python", "work root"}
    assert {check.severity for check in checks.values()} == {"note"}, checks


def test_the_mini_cluster_is_as_its_profile_says(cluster_runs: Runs) -> None:
    checks = {check.rule: check for check in cluster_runs.doctor("minilumi")}
    # How much room other tests have left is not what is tested here.
    room = checks["work root"]
    assert room.severity != "error" and "GiB free" in room.message, room
    wrong = [c for c in checks.values() if c.severity != "note" and c is not room]
    assert not wrong, wrong
    assert len(checks) == 14


@pytest.mark.both_slurms
def test_a_wrong_profile_and_a_foreign_account_are_found_on_the_mini_cluster(
    cluster_runs: Runs, home: Home
) -> None:
    wrong = home.config / "sites" / "wrong.yaml"
    wrong.write_text(
        "extends: minilumi\npartitions:\n  dev-g: {max_nodes: 16}\nnode: {threads_per_core: 4}\n"
        "containers:\n  laif: {image: /appl/local/no.sif}\n"
    )
    runs = Runs(home.settings)
    checks = {check.rule: check for check in runs.doctor("wrong", "project_462000002")}
    runs.close()
    assert {name: check.severity for name, check in checks.items() if check.severity != "note"} == {
        "partition dev-g": "warning",
        "node nid005001 threads_per_core": "warning",
        "image laif": "error",
        "account": "error",
        "work root": "error",
    }
    assert checks["partition dev-g"].message == "max_nodes 8; the profile has 16"
    assert checks["node nid005001 threads_per_core"].message == "2; the profile has 4"


@pytest.mark.parametrize(
    ("out", "code", "err", "words"),
    [
        (b"", 0, b"", "exit status 0"),
        (b"", 255, b"", "exit status 255"),
        (b"", 255, b"Connection closed by remote host\n", "Connection closed by remote host"),
        (b"This account is currently not available.\n", 1, b"", "not available"),
        (b"\xff\xfe\x00" * 1000, 0, b"", "\ufffd"),
        (b"x" * 3_000_000, 0, b"", "xxx"),
    ],
)
def test_an_answer_without_sense_fails_the_connection_with_its_words(
    site: Site, out: bytes, code: int, err: bytes, words: str
) -> None:
    for account in ("", "project_462000001"):
        checks = examine.examine(FixedAnswer(out, code, err), site, account, lambda name: "/work")
        assert (checks[0].rule, checks[0].severity) == ("connection", "error")
        assert words in checks[0].message
        assert all(len(check.message) < 2100 for check in checks)
    (root,) = [check for check in checks if check.rule == "work root"]
    assert root.severity == "error" and root.do


@pytest.mark.parametrize(
    ("answer", "severity", "found"),
    [
        ("", "error", "no answer: no reason given"),
        ("\n", "error", "no answer"),
        ("/work\n", "error", "no answer: /work"),
        ("/work\nwritable\n", "note", "/work is writable"),
        ("/work\nwritable\nfs 1 2 -3 4% /\n", "note", "/work is writable"),
        ("/work\nwritable\nfs 1 2 1e999 4% /\n", "note", "/work is writable"),
        (f"/work\nwritable\nfs 1 2 {'9' * 5000} 4% /\n", "note", "/work is writable"),
        ("/work\nwritable\nfs 1 2 3 4% /\n", "warning", "/work, 0.0 MiB free"),
        ("/work\nrefused\nfs 1 2 2097152 4% /\n", "error", "is not writable, 2.0 GiB free"),
    ],
)
def test_the_answer_about_the_work_root_may_be_anything(
    answer: str, severity: str, found: str
) -> None:
    check = cluster_checks.work_root(answer, "/work", "lumi")
    assert check.severity == severity and found in check.message
