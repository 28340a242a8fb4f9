"""One request asks a site about a job: each part is read within limits, and fails on its own."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.runs import Runs
from lumitui.remote.site.sites import BUILT_IN, Sites
from lumitui.remote.survey.ask_inquiry import (
    Answers,
    InquiryRequest,
    environment,
    inquire,
    questions,
    trial,
)
from lumitui.remote.survey.meter_rows import BudgetRow, amount, budget_rows, quota_rows
from lumitui.remote.transport.local import Local
from lumitui.remote.transport.questions import Question
from tests.support.servers.cluster import Cluster
from tests.support.servers.transports import FixedAnswer

LUMI = Sites([BUILT_IN]).load("lumi")

# From public notes of people who use LUMI, April 2025 and April 2026.
ALLOCATIONS = """Data updated: 2025-04-22 17:05:41
Project             |            CPU (used/allocated)|      GPU (used/allocated)|  Storage (used/allocated)
---------------------------------------------------------------------------------------------------------
project_462000599   |    5/500000   (0.0%) core/hours|  11308/10000 (113.1%) gpu/hours|  3107/5000  (62.1%) TB/hours
project_462000781   |      0/1000   (0.0%) core/hours|   4097/10000  (41.0%) gpu/hours| 1024/10000  (10.2%) TB/hours
"""  # noqa: E501 - as it is printed
WORKSPACES = """Disk area                          Capacity(used/max)  Files(used/max)
----------------------------------------------------------------------
Personal home folder
Home folder is hosted on lustrep2

/users/alfiolaz                               19G/22G         62K/100K
----------------------------------------------------------------------
/scratch/project_465002906                  7.2T*/7.0T          2/2.0M
"""


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of commands that print what a site's print."""
    folder = tmp_path / "bin"
    folder.mkdir()
    printed = {
        "squeue": "RUNNING|standard-g|normal|project_1\nPENDING|dev-g|normal|project_1\n",
        "sacctmgr": "project_1||normal,debug|10|200\n",
        "scontrol": "PartitionName=dev-g MaxNodes=32 MaxTime=03:00:00 State=UP TotalNodes=48\n",
        "sbatch": "sbatch: Job 7 to start at 1795397771 using 56 processors on nodes n1\n",
        "lumi-workspaces": WORKSPACES,
        "lumi-allocations": ALLOCATIONS,
    }
    for name, text in printed.items():
        (folder / f"{name}.txt").write_text(text)
        (folder / name).write_text(f'#!/bin/sh\ncat "{folder}/{name}.txt"\n')
        (folder / name).chmod(0o700)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    return folder


def asked(*paths: str) -> InquiryRequest:
    """Return a question with all parts."""
    return InquiryRequest(
        paths, True, "dev-g", "lumi-workspaces", "lumi-allocations", "#!/bin/sh\ntrue 'a b'\n"
    )


def test_all_parts_of_an_answer(tools: Path, tmp_path: Path) -> None:
    (tmp_path / "image.sif").write_text("")
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    odd = str(tmp_path / "it's new/a b")
    found = inquire(
        Local(), LUMI, asked(str(tmp_path / "image.sif"), odd, str(tmp_path / "gone"), "~/x")
    )
    assert not found.faults
    image, new, gone, _ = found.paths
    assert (image.kind, image.readable, image.above) == ("file", True, str(tmp_path))
    assert (new.kind, new.path, new.above, new.above_writable) == ("none", odd, str(tmp_path), True)
    assert gone.kind == "link"
    assert image.space is not None and 0 <= image.space.blocks <= 1
    assert [job.state for job in found.jobs] == ["RUNNING", "PENDING"]
    (association,) = found.associations
    assert (association.qos, association.max_submit) == (("normal", "debug"), 200)
    assert found.partition is not None and found.partition.seconds == 3 * 3600
    assert found.trial is not None and found.trial.start == 1795397771.0
    assert [round(row.full, 2) for row in found.quotas] == [0.86, 1.03]
    assert found.budgets == (
        BudgetRow("project_462000599", -1308.0, 10000.0),
        BudgetRow("project_462000781", 5903.0, 10000.0),
    )


def test_each_part_fails_on_its_own(tools: Path, tmp_path: Path) -> None:
    (tools / "squeue").write_text(
        "#!/bin/sh\necho 'slurm_load_jobs error: timed out' >&2\nexit 1\n"
    )
    (tools / "sacctmgr").write_text("#!/bin/sh\nyes '|||'\n")
    (tools / "lumi-allocations").unlink()
    (tools / "sbatch").write_text("#!/bin/sh\nhead -c 4 >/dev/null\necho no; exit 3\n")
    found = inquire(Local(), LUMI, asked(str(tmp_path)))
    assert found.faults["jobs"] == "`squeue` failed: slurm_load_jobs error: timed out."
    assert found.faults["associations"] == "`sacctmgr` prints more than lumitui reads."
    assert "`commands: balance:`" in found.faults["budgets"]
    assert found.trial is not None and (found.trial.accepted, found.trial.words) == (False, "no")
    assert found.paths[0].writable and found.partition is not None


def test_an_account_may_have_more_qos_than_fit_200_characters() -> None:
    names = tuple(f"a_long_name_of_a_qos_{number}" for number in range(40))
    text = (
        f"MARKER associations\nproject_1||{','.join(names)}|10|200\nMARKER-status=0\nMARKER end\n"
    )
    (found,) = inquire(FixedAnswer(text.encode()), LUMI, asked()).associations
    assert found.qos == names


def test_a_refusal_is_told_in_slurms_words() -> None:
    said = (
        "sbatch: error: invalid partition specified: nope\n"
        "allocation failure: Invalid partition name specified\nstatus=1\n"
    )
    found = trial(said)
    assert found is not None and not found.accepted
    assert found.words == "invalid partition specified: nope; Invalid partition name specified"
    assert trial("status=0\n") is None and trial("Job 7 to start at 1\n") is None


def test_a_site_without_slurm_is_asked_about_paths_alone(tmp_path: Path) -> None:
    question = InquiryRequest((str(tmp_path),), slurm=False)
    assert [one.name for one in questions(question, LUMI)] == ["path-0"]
    found = inquire(Local(), LUMI, question)
    assert not found.faults and found.paths[0].kind == "folder"


@pytest.mark.parametrize(
    ("text", "number"),
    [("55T", 55 * 1024.0**4), ("8.2K", 8396.8), ("1,7G", 1.7 * 1024**3), ("2", 2.0), ("x", None)],
)
def test_numbers_as_sites_print_them(text: str, number: float | None) -> None:
    assert amount(text, 1024) == number


@given(st.binary(max_size=300), st.sampled_from(questions(asked("/x"), LUMI)))
def test_no_bytes_make_it_raise(content: bytes, part: Question[object]) -> None:
    question = asked("/x")
    for status in (b"\nMARKER-status=0\n", b"status=1\nMARKER-status=0\n", b"MARKER-status=1", b""):
        record = b"MARKER " + part.name.encode() + b"\n" + content + status + b"\nMARKER end\n"
        found = inquire(FixedAnswer(record), LUMI, question)
        assert isinstance(found, Answers) and found.faults


@given(st.text(max_size=200))
def test_no_text_makes_a_meter_raise(text: str) -> None:
    assert LUMI.quota is not None and LUMI.budget is not None
    quota_rows(text, LUMI.quota)
    budget_rows(text, LUMI.budget)


def test_the_mini_cluster_answers_in_one_request(cluster_runs: Runs, cluster: Cluster) -> None:
    site = cluster_runs.sites.load("minilumi")
    script = (
        "#!/bin/bash\n#SBATCH -p standard-g -A project_462000001 -N 2 -t 10 --gpus-per-node=8\n"
    )
    connection = cluster_runs._connections.get(site)
    before = cluster_runs.footprint("minilumi").requests
    found = inquire(
        connection.transport, site, InquiryRequest(("/scratch",), True, "standard-g", script=script)
    )
    assert cluster_runs.footprint("minilumi").requests == before + 1
    assert not found.faults
    assert found.trial is not None and found.trial.accepted and found.trial.start
    assert found.partition is not None and found.partition.state == "UP"
    assert "project_462000001" in {one.account for one in found.associations}
    wrong = script.replace("462000001", "462000009")
    refused = inquire(connection.transport, site, InquiryRequest((), True, script=wrong)).trial
    assert refused is not None and "Invalid account" in refused.words


LMOD = """Lmod has detected the following error:  The following module(s) are unknown:
"rocm/6.2.2"

Please check the spelling or version number. Also try "module spider ..."

Also make sure that all modulefiles written in TCL start with the string
#%Module
"""


@pytest.mark.parametrize(
    "printed, words",
    [
        (LMOD, "Lmod has detected the following error: The following module(s) are unknown: "
               '"rocm/6.2.2"'),
        ("ERROR: Unable to locate a modulefile for 'a'\n", "ERROR: Unable to locate a modulefile "
                                                           "for 'a'"),
        ("loading a\nno luck\n", "no luck"),
        ("", ""),
    ],
)  # fmt: skip
def test_a_module_that_fails_to_load_is_told_by_its_error(printed: str, words: str) -> None:
    text = f"lumitui at module load x\n{printed}lumitui failed\nlumitui python 3.11\n"
    found = environment(text)
    assert found is not None and (found.failed, found.words) == ("module load x", words)
