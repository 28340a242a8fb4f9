"""A profile from what Slurm said: real answers with something changed, and spoilt ones."""

import re

import pytest

from lumitui.remote.site.errors import LumiError
from lumitui.remote.site.partition import NodeBilling, SliceBilling, SumBilling
from lumitui.remote.survey.profile.ask_cluster import ask
from lumitui.remote.survey.profile.shape_choice import choose
from tests.support.attacks.spoilt_text import survive, worse
from tests.support.replies.surveyed import SURVEY, site_of, text_from, with_changes
from tests.support.servers.transports import FixedAnswer

GRES = "gpu:a100:4"
TWO_QOS = (("zephyr|ag-lehre42||normal|\n", "zephyr|ag-lehre42||short,long|\n"),)
TIER_2 = "PriorityJobFactor=1 PriorityTier=2"
HIGH = (
    "PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=EXCLUSIVE",
    "PriorityTier=2 RootOnly=NO ReqResv=NO OverSubscribe=EXCLUSIVE",
)
"""The partition `whole` has a higher priority than the others."""
CANCEL = ("PreemptMode=OFF", "PreemptMode=CANCEL")
ENFORCED = ("associations,limits", "associations,limits,qos")
LIMITED = ("normal||||\n", "short|01:00:00|node=1,gres/gpu=4|2|\nlong|2-00:00:00|||gres/gpu=4\n")


def test_a_profile_says_what_was_found_and_what_was_guessed() -> None:
    text = text_from(SURVEY)
    site = site_of(text)
    node = site.node
    assert (site.title, site.slurm_version, site.hosts.login) == (
        "new (zephyr)",
        "22.05.8",
        "login.example",
    )
    assert (node.gpus, node.gpu, node.cores, node.threads_per_core) == (4, "a100", 48, 2)
    assert (node.reserved_cores, node.memory_gib, site.cores_per_gpu) == ("0,12,24,36", 250, 11)
    assert site.account.default == "ag-lehre42"
    assert site.work_root == "/work/{account}/{user}/lumitui"
    assert site.folders == {"HOME": "/users/{user}", "WORK": "/work/{account}"}
    assert "folders.WORK" in site.unverified and "folders.HOME" not in site.unverified
    # Whole nodes first: a first job begins there, and its binding can be proved.
    assert list(site.partitions) == ["whole", "parts"]
    whole, parts = site.partitions.values()
    assert (whole.max_time, whole.max_nodes, whole.allocation) == ("1-12:00:00", 2, "node")
    assert whole.billing == NodeBilling(per_node_hour=84)  # (48 - 4) x 2 x 0.5 + 4 x 10
    assert parts.billing == SumBilling(per_core_hour=2)  # without weights each CPU counts 1
    assert site.memory_per_gpu == "62G"
    assert "partition closed: it is for other accounts" in text
    assert "partition asleep: it is not up" in text
    assert {"work_root", "memory_per_gpu", "node.gpu_memory_gib"} <= set(site.unverified)
    assert not any(key.startswith("node.c") for key in site.unverified)
    assert "--probe` measures them" in text
    # Every value has a line that says where it comes from.
    assert text.count("# source:") + text.count("# guess:") > 20


def test_the_key_of_the_login_is_written_as_a_guess() -> None:
    text = text_from(SURVEY, keys={"ed25519": "SHA256:abc", "ecdsa-sha2-nistp384": "SHA256:a+/b"})
    site = site_of(text)
    assert site.hosts.fingerprints == {
        "ed25519": "SHA256:abc",
        "ecdsa-sha2-nistp384": "SHA256:a+/b",
    }
    assert "hosts.fingerprints.ed25519" in site.unverified and "missing: fingerprints" not in text


def test_a_login_node_without_python_makes_the_nodes_a_guess() -> None:
    site = site_of(text_from(with_changes(("module\nMARKER", "module\nno-python3\nMARKER"))))
    assert site.python_on_compute_nodes is False
    assert "python_on_compute_nodes" in site.unverified
    assert site_of(text_from(SURVEY)).python_on_compute_nodes is None


@pytest.mark.parametrize(
    ("changes", "key", "value"),
    [
        ([(GRES, "gpu:4")], "node.gpu", "GPU"),
        ([(GRES, "gpu:a100:4(S:0-1),nvme:3600")], "node.gpus", 4),
        ([(GRES, "craynetwork:4,gpu:a100:no_consume:4")], "node.gpus", 4),
        ([(GRES, "gpu:a100:3(IDX:0,2,3),gpu:a100_1g.5gb:7(S:0)")], "node.gpus", 3),
        ([(GRES, "gpu:mi250:8")], "visible_gpus", "ROCR_VISIBLE_DEVICES"),
        ([(GRES, "gpu:H200:8")], "node.gpu_memory_gib", 141),
        ([("|96|2|24|2|", "|48|2|24|2|")], "node.threads_per_core", 1),
        # Slurm gives cores where it counts threads; where it counts cores nothing is asked.
        ([], "sbatch_arguments", ("--hint=nomultithread",)),
        ([("|96|2|24|2|", "|48|2|24|2|")], "sbatch_arguments", ()),
        ([("|96|2|24|2|", "|96|1|1|1|")], "node.cores", 96),
        ([("CR_CORE_MEMORY", "CR_CORE")], "memory_per_gpu", ""),
        ([("x86_64", "aarch64")], "node.architecture", "aarch64"),
        ([("JobRequeue              = 1", "JobRequeue = 0")], "requeue", False),
        ([("/work/ag-lehre42", "/p/x1/alice")], "work_root", "/p/x1/{user}/lumitui"),
        ([("/work/ag-lehre42|4194100", "/work/ag-lehre42|523264"),
          ("alice|523744", "alice|99523744")], "work_root",
         "/users/{user}/lumitui"),
        ([("found|/work/ag-lehre42|", "$SCRATCH|/work/ag-lehre42|")], "folders",
         {"HOME": "/users/{user}", "SCRATCH": "/work/{account}"}),
        ([("found|/work/ag-lehre42|", "$STAGE_1|/work/ag-lehre42|")], "folders",
         {"HOME": "/users/{user}"}),
        ([("slurm-wlm 22.05.8", "slurm 25.05.3")], "slurm_version", "25.05.3"),
        ([("zephyr|ag-lehre42||normal|", "")], "account.required", False),
        ([("zephyr|ag-lehre42||normal|", "other|theirs||normal|")], "account.required", False),
        ([("zephyr|", "ZEPHYR|")], "account.default", "ag-lehre42"),
        ([("MaxTime=UNLIMITED", "MaxTime=INFINITE")], "partitions.parts.max_time",
         "365-00:00:00"),
        ([("MaxNodes=2 ", "MaxNodes=UNLIMITED ")], "partitions.whole.max_nodes", 2),
        ([("=0-1,24-25,48-49,72-73", "=0,24,48,72")], "node.reserved_cores", "0,24"),
        ([("AllowAccounts=staff", "AllowAccounts=ALL")], "partitions.closed.max_time", "01:00:00"),
        ([ENFORCED, *TWO_QOS, LIMITED], "partitions.whole-short.arguments", ("--qos=short",)),
        ([ENFORCED, *TWO_QOS, LIMITED], "partitions.whole-short.slurm_partition", "whole"),
        ([ENFORCED, *TWO_QOS, LIMITED], "partitions.whole-short.max_time", "01:00:00"),
        ([ENFORCED, *TWO_QOS, LIMITED], "partitions.whole-short.max_gpus", 4),
        ([ENFORCED, *TWO_QOS, LIMITED], "partitions.parts-long.min_gpus", 4),
        ([ENFORCED, *TWO_QOS, LIMITED], "partitions.whole-short.grows_to", "whole-long"),
        ([("QoS=N/A", "QoS=short"), LIMITED], "partitions.parts.max_gpus", 4),
        ([("QoS=N/A", "QoS=short"), LIMITED], "partitions.parts.max_time", "01:00:00"),
        ([ENFORCED, ("|normal|\n", "|one|\n")], "partitions.whole.arguments", ("--qos=one",)),
        ([ENFORCED, ("|normal|\n", "|one,two|one\n")], "partitions.whole.arguments", ()),
        ([HIGH, CANCEL], "partitions.parts.preempts", True),
        ([HIGH, CANCEL], "partitions.whole.preempts", False),
        ([HIGH], "partitions.parts.preempts", False),  # PreemptMode=OFF
        ([CANCEL], "partitions.parts.preempts", False),  # none has a higher priority
        ([HIGH, CANCEL, ("gx[11-12] PriorityJobFactor=1 PriorityTier=2", f"gx[2-9,12] {TIER_2}")],
         "partitions.parts.preempts", True),
        ([HIGH, CANCEL, ("gx[11-12] PriorityJobFactor=1 PriorityTier=2", f"gx13 {TIER_2}")],
         "partitions.parts.preempts", False),
        ([HIGH, CANCEL, ("MaxNodes=2 ", "MaxNodes=1 ")], "partitions.whole.grows_to", None),
        ([("MaxNodes=2 ", "MaxNodes=1 ")], "partitions.whole.grows_to", "parts"),
        ([], "partition_required", False),
        ([("Default=YES", "Default=NO")], "partition_required", True),
        # Others that have such GPUs, too, are not described: the list would be incomplete.
        ([], "other_partitions", None),
        ([("closed|2|96|2|24|2|256000|gpu:a100:4", "closed|2|96|2|24|2|256000|(null)"),
          ("asleep|2|96|2|24|2|256000|gpu:a100:4", "asleep|2|96|2|24|2|256000|(null)")],
         "other_partitions", ("closed", "asleep")),
        ([("closed|2", "true|2"), ("=closed", "=true"), ("=staff", "=ALL")],
         "partitions.true.max_time", "01:00:00"),
    ],
)  # fmt: skip
def test_odd_answers_are_understood(
    changes: list[tuple[str, str]], key: str, value: object
) -> None:
    found: object = site_of(text_from(with_changes(*changes)))
    for name in key.split("."):
        found = found[name] if isinstance(found, dict) else getattr(found, name)
    assert found == value


def test_the_largest_share_is_billed_where_the_site_says_so() -> None:
    answer = with_changes(("JobRequeue ", "PriorityFlags = MAX_TRES\nJobRequeue "),
                          ("OverSubscribe=EXCLUSIVE", "OverSubscribe=NO"))  # fmt: skip
    billing = site_of(text_from(answer)).partitions["whole"].billing
    assert billing == SliceBilling(cores=1, memory_gib=1e6, gpus=0.1, per_slice_hour=1)


def test_of_several_kinds_of_nodes_one_is_described_and_the_others_are_named() -> None:
    rows = "parts|2|96|2|24|2|256000|gpu:a100:4|gx[11-12]\n"
    other = "parts|1|64|2|32|1|128000|gpu:h100:2|hx1\nparts|3|96|2|24|2|192000|gpu:a100:4|gx[1-3]\n"
    answer = with_changes((rows, rows + other))
    text = text_from(answer)
    site = site_of(text)
    assert "1 node with 2 x h100" in text
    assert (site.node.memory_gib, site.partitions["parts"].max_nodes) == (187, 5)
    # Without the type a job could get the others.
    assert site.gpu_request == "--gpus-per-node=a100:{gpus}"
    only = site_of(text_from(answer.replace("gpu:a100", "gpu:a30"), partition="parts"))
    assert list(only.partitions) == ["parts"]


@pytest.mark.parametrize(
    ("changes", "options", "words"),
    [
        ([(GRES, "(null)")], {}, "no GPUs in zephyr. If its nodes have GPUs anyway"),
        ([(GRES, "gpu:a100:0")], {}, "no GPUs in zephyr"),
        ([], {"partition": "nope"}, "'nope' is not a partition. The partitions are: "
         "whole, parts, closed, a"),
        ([("State=UP", "State=DRAIN")], {}, "You may not use any partition of zephyr: "
         "partition whole"),
        ([("MARKER groups", "MARKER lost")], {}, "no partitions or no nodes"),
        ([("slurm-wlm 22.05.8", "sh: sbatch: not found"), ("PartitionName", "Nope")], {},
         "porch does not have Slurm; sbatch prints 'sh: sbatch: not found'"),
        ([("MARKER login", "login")], {}, "The host did not answer the survey"),
    ],
)  # fmt: skip
def test_what_cannot_be_described_is_a_sentence(
    changes: list[tuple[str, str]], options: dict[str, str], words: str
) -> None:
    with pytest.raises(LumiError) as failed:
        text_from(with_changes(*changes), **options)  # type: ignore[arg-type]
    assert words in str(failed.value)


def test_a_site_that_hides_its_gpus_is_described_with_the_number_that_a_person_says() -> None:
    text = text_from(with_changes((GRES, "(null)")), gpus=4)
    site = site_of(text)
    assert (site.node.gpus, site.gpu_request) == (4, "") and "given by you" in text
    shown = text_from(with_changes((GRES, "gpu:4")))
    assert "given by you" not in shown, "Slurm shows them"
    assert "gres_types: []" in shown and "gres_types" not in text


@pytest.mark.parametrize("count", [80, pytest.param(1000, marks=pytest.mark.slow)])
def test_spoilt_answers_give_a_sentence_or_a_profile_that_loads(count: int) -> None:
    def take(text: bytes) -> None:
        try:
            profile = text_from(text)
        except LumiError as error:
            assert error.message.endswith(".") and error.hint
        else:
            site_of(profile)

    survive(worse([SURVEY.encode()], count), take)


def test_a_sites_words_cannot_leave_their_comment() -> None:
    answer = with_changes(("ClusterName             = zephyr", "ClusterName = \x1b[31mx\x85y"),
                          ("zephyr|", "\x1b[31mx\x85y|"),
                          ("porch", "x\u2028name: evil"))  # fmt: skip
    text = text_from(answer)
    assert not set("\x1b\x85\u2028") & set(text)
    assert site_of(text).name == "new"


def test_gpus_that_slurm_shows_otherwise_are_said_to_be_left_out() -> None:
    cluster = ask(FixedAnswer(SURVEY.encode()))
    said = "--gpus 3, but Slurm itself shows 4 GPUs in each node"
    assert said in choose(cluster, gpus=3).left_out
    assert choose(cluster, gpus=4).left_out == choose(cluster).left_out


def test_the_comment_of_a_guess_says_what_is_no_fact() -> None:
    text = text_from(re.sub(r"TRESBillingWeights=\S+", "", with_changes((GRES, "gpu:4"))))
    assert re.search(r"# guess: not a fact: [^\n]+\n *gpu_memory_gib: 16\n", text)
    assert "# guess: Slurm has no TRESBillingWeights; set the site's price\n" in text
