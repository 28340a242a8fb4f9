"""A profile checked by itself: each mistake with its line, each unwise value, and exit codes."""

import re
from pathlib import Path

import pytest

from lumitui.remote.site.errors import InputError
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.sites import BUILT_IN, Sites
from lumitui.remote.survey.doctor.profile_checks import profile_remarks
from tests.support.program.command_line import Here, envelope
from tests.support.replies.surveyed import SURVEY, text_from

SOUND = text_from(SURVEY).replace(
    "hosts:\n", "hosts:\n  fingerprints: {ed25519: 'SHA256:abc'}\n"
).replace("365-00:00:00", "7-00:00:00") + (
    "poll_seconds: 60\n"
)  # fmt: skip
MAP = (
    "  gpu_cores: [13-23, 1-11, 37-47, 25-35]\n  gpu_numa: [1, 0, 3, 2]\n"
    "  gpu_bus: [17, 31, b1, ca]\n  no_gpu_cores"
)


def said(tmp_path: Path, *changes: tuple[str, str]) -> list[Finding]:
    text = SOUND.replace("  no_gpu_cores", MAP)
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    (tmp_path / "new.yaml").write_text(text)
    return list(profile_remarks(tmp_path / "new.yaml", (BUILT_IN,)))


def test_there_is_nothing_to_say_of_a_sound_profile(tmp_path: Path) -> None:
    assert said(tmp_path) == []


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("1-11", "1-5", "node.gpu_cores: ranks get 5 and 11 cores"),
        (
            "cores_per_gpu: 11",
            "cores_per_gpu: 12",
            "12 for each of 4 GPUs is more than the 44 cores that a job may use; write at most 11",
        ),
        ("cores_per_gpu: 11", "cores_per_gpu: 8", "8, but each GPU is near 11 cores"),
        ("  gpu_bus: [17, 31, b1, ca]\n", "", "node.gpu_bus: missing"),
        ("  gpu_cores: [13-23, 1-11, 37-47, 25-35]\n", "", "node.gpu_cores: missing, so lumitui"),
        ("62G", "64G", "memory_per_gpu: 64G for all GPUs of a node exceeds its 250 GiB"),
        ("62G", "lots", "'lots' is not an amount of memory"),
        ("[17, 31, b1, ca]", "[17, 31, b1, b1]", "node.gpu_bus: b1 is listed twice"),
        ("max_gpus_per_node: 4", "max_gpus_per_node: 8", "a node has only 4"),
        (
            "max_gpus_per_node: 4",
            "max_gpus_per_node: 4\n    grows_to: parts",
            "partitions.parts.grows_to: is the partition itself",
        ),
        ("per_node_hour: 84", "per_node_hour: 0", "partitions.whole.billing: has no rates"),
        ("7-00:00:00", "365-00:00:00", "partitions.parts.max_time: means no limit"),
        ("fingerprints", "identity: x\n#", "hosts: has no fingerprints"),
        ("poll_seconds: 60", "poll_seconds: 1", "poll_seconds: a query every 1 s burdens"),
        ("{user}", "all", "work_root: has no {user}"),
        ("  - node_folder", "  - node_foldr", "unverified: node_foldr is not a key"),
        ("poll_seconds: 60\n", "retired: 2026-01-01\n", "retired: set `replaced_by:`"),
    ],
)
def test_what_is_unwise_is_said_at_its_line(tmp_path: Path, old: str, new: str, words: str) -> None:
    found = said(tmp_path, (old, new))
    assert any(words in one.message and one.severity == "warning" for one in found), found
    assert all(re.search("; .|: set ", one.message) for one in found), "each names its cure"
    rows = (tmp_path / "new.yaml").read_text().splitlines()
    assert all(0 < one.at.line <= len(rows) for one in found)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("login: login.example", "login: breeze", "hosts.login: 'breeze' is not a full host name"),
        ("[13-23, 1-11, 37-47, 25-35]", "[18-23, 1-6, 37-42, 25-30]",
         "node.gpu_cores: cores 7-11,13-17,31-35,43-47 are in no list, so masks leave them idle"),
    ],
)  # fmt: skip
def test_what_may_be_intended_is_a_note(tmp_path: Path, old: str, new: str, words: str) -> None:
    (found,) = said(tmp_path, (old, new))
    assert (found.severity, found.message.startswith(words)) == ("note", True), found


def test_the_default_container_is_said_where_the_profile_leaves_it_to_the_order(
    tmp_path: Path, here: Here
) -> None:
    block = "containers:\n  own: {image: /images/a.sif, call: [singularity, run]}\nnode:\n"
    (note,) = (one for one in said(tmp_path, ("node:\n", block)) if "runs in" in one.message)
    assert note.severity == "note"
    assert "a job that names no container runs in own, the first" in note.message
    named = said(tmp_path, ("node:\n", f"default_container: own\n{block}"))
    assert not [one for one in named if one.severity == "note"]
    (tmp_path / "new.yaml").write_text(
        f"{SOUND}# source: you\ncontainers:\n  own: {{image: /images/a.sif, call: [run]}}\n"
    )
    done = here("site", "check", "--file", str(tmp_path / "new.yaml"))
    assert "note: containers: a job that names no container runs in own" in done.stdout


def test_mistakes_have_their_lines_and_no_source_is_said_once(tmp_path: Path) -> None:
    found = said(tmp_path, ("cores_per_gpu: 11", "cores_per_gpuu: 11"))
    assert {one.severity for one in found} == {"error"}
    (one,) = [one for one in found if "did you mean `cores_per_gpu`?" in one.message]
    row = (tmp_path / "new.yaml").read_text().splitlines()[one.at.line - 1]
    assert row.startswith("cores_per_gpuu")
    bare = "\n".join(row for row in SOUND.splitlines() if not row.strip().startswith("#"))
    (tmp_path / "new.yaml").write_text(bare)
    messages = [one.message for one in profile_remarks(tmp_path / "new.yaml", (BUILT_IN,))]
    assert sum("# source:" in words for words in messages) == 1


def test_a_wrong_name_hides_no_other_finding(tmp_path: Path) -> None:
    name = ("name: new", "name: old")
    wrong = said(tmp_path, name, ("poll_seconds: 60", "poll_seconds: 1"))
    assert [(one.severity, one.message.partition(";")[0]) for one in wrong] == [
        ("error", "name: 'old' differs from the file's name, 'new'"),
        ("warning", "poll_seconds: a query every 1 s burdens a shared login node"),
    ]
    both = said(tmp_path, name, ("cores_per_gpu: 11", "cores: 11"))
    assert len(both) == 3 and "'old'" in both[0].message


@pytest.mark.parametrize("name", Sites([BUILT_IN]).names())
def test_the_programs_own_profiles_have_no_mistake(name: str) -> None:
    for one in profile_remarks(BUILT_IN / f"{name}.yaml", (BUILT_IN,)):
        assert one.severity != "error"
        assert "source" not in one.message and "is not a key" not in one.message


def test_the_exit_codes_are_those_of_linters(here: Here, tmp_path: Path) -> None:
    assert said(tmp_path) == []
    path = tmp_path / "new.yaml"
    assert here("site", "check", "--file", str(path)).returncode == 0
    path.write_text(path.read_text().replace("poll_seconds: 60", "poll_seconds: 1"))
    done = here("site", "check", "--file", str(path))
    assert (done.returncode, done.stdout.startswith(f"{path}:")) == (1, True)
    path.write_text("nodes: [")
    broken = here("site", "check", "--file", str(path), "--json")
    assert (broken.returncode, envelope(broken)["data"][0]["severity"]) == (2, "error")
    with pytest.raises(InputError, match="does not exist"):
        profile_remarks(tmp_path / "no.yaml", ())
