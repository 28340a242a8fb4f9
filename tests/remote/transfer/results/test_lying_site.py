"""A site that lies during a fetch: one sentence about one file, and the other files come."""

import os
import tarfile
from pathlib import Path

import pytest

from lumitui.app.follow.results.result_files import check_fetch
from lumitui.remote.site.errors import AnswerUnusable, InputError, LinkError, RefusedError
from lumitui.remote.transfer.results import site_files, transfer
from lumitui.remote.transfer.results.fetch_files import FetchOutcome, fetch
from tests.support.program.child import child
from tests.support.servers.lying_site import (
    InventedSite,
    Lie,
    LyingTransport,
    lying_sshd,
)

LONG = "x" * 4990


def left(brought: FetchOutcome) -> dict[str, str]:
    """What did not come, and why; the command line names it and ends with 4."""
    with pytest.raises(RefusedError) as told:
        check_fetch(brought, named=True)
    assert told.value.exit_code == 4 and brought.left[0].name in told.value.message
    return {item.name: item.why for item in brought.left}


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


SIZES = ["", "-5", "1e9", "0x10", "9" * 30, "9" * 5000, "NaN", "\xd9\xa3", "+1", "1_0"]


def test_a_size_that_is_no_number_is_one_files(run: Path, tmp_path: Path) -> None:
    lies = "".join(f"file {digits} ./bad{number}\0" for number, digits in enumerate(SIZES))
    brought = fetch(LyingTransport(Lie("walk()", add=lies)), str(run), ["*"], tmp_path / "here")
    assert [item.name for item in brought.files] == ["a", "b", "c"]
    reasons = left(brought)
    assert set(reasons) == {f"bad{number}" for number in range(len(SIZES))}
    assert all("invalid size" in reason for reason in reasons.values())
    assert max(map(len, reasons.values())) < 200


NAMES = {
    f"./{LONG}{LONG}": "longer than 4,096 bytes",
    f"./{'y' * 300}": "a part of its name is longer than 255 bytes",
    "./../../etc/x": "points outside",
    "./b/../../x": "points outside",
    "/etc/passwd": "points outside",
    "b": "points outside",
    "./": "points outside",
    "./.": "points outside",
    "./d/": "the name of a folder",
    "./caf\xe9": "not UTF-8",
    "./" + "d/" * 200 + "x": "more than 128 folders",
    "./.lumitui-fetch/0.part": "partial downloads",
    "./.LUMITUI-fetch/0.part": "partial downloads",
}


def test_a_name_that_cannot_be_is_one_files(run: Path, tmp_path: Path) -> None:
    lies = "".join(f"file 3 {path}\0" for path in NAMES)
    site = LyingTransport(Lie("walk()", add=lies))
    brought = fetch(site, str(run), ["*"], tmp_path / "up" / "here")
    assert [item.name for item in brought.files] == ["a", "b", "c"]
    assert len(left(brought)) == len(NAMES)
    for words in NAMES.values():
        assert any(words in item.why for item in brought.left), words
    assert all(len(item.name) < 260 for item in brought.left)
    assert tree(tmp_path / "up") == ["here", "here/a", "here/b", "here/c"]


def test_names_that_a_file_system_can_hold_come(run: Path, tmp_path: Path) -> None:
    names = ["n" * 245, "o" * 255, "new\nline", "-x", " ", "\x1b[2J", "d/" * 20 + "p" * 245]
    for name in names:
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_text(name)
    brought = fetch(LyingTransport(), str(run), ["*"], tmp_path / "here")
    assert {item.name for item in brought.files} == {"a", "b", "c", *names}
    assert all((tmp_path / "here" / name).read_text() == name for name in names)
    assert brought.left == ()


@pytest.mark.parametrize("first", [b"./d", b"./d/x"])
def test_a_file_and_a_folder_of_one_name(tmp_path: Path, first: bytes) -> None:
    files = {b"./d": b"file", b"./d/x": b"below", b"./e/f": b"other", b"./e": b"file"}
    site = InventedSite({first: files[first], **files})
    brought = fetch(site, "/run", ["*"], tmp_path / "here")
    assert len(brought.files) == 2 and len(left(brought)) == 2
    assert not (tmp_path / "here" / ".lumitui-fetch").exists()


@pytest.mark.parametrize("unknown", ["what 1 ./a", "", "\x1b]0;x\x07", "q" * 60_000, "end"])
def test_an_answer_that_is_no_list(run: Path, tmp_path: Path, unknown: str) -> None:
    site = LyingTransport(Lie("walk()", add=f"{unknown}\0"))
    words = "before they finished" if unknown == "end" else "unknown record"
    with pytest.raises(AnswerUnusable, match=words):
        fetch(site, str(run), ["*"], tmp_path / "here")


CUTS = ["walk()", "sums()", "give()"]


@pytest.mark.parametrize("when", CUTS)
@pytest.mark.parametrize("cut", [0, 1, 40])
def test_half_an_answer(run: Path, tmp_path: Path, when: str, cut: int) -> None:
    with pytest.raises(AnswerUnusable, match="is truncated"):
        fetch(LyingTransport(Lie(when, cut=cut)), str(run), ["*"], tmp_path / "here")


@pytest.mark.parametrize("when", CUTS)
def test_an_answer_of_random_bytes(run: Path, tmp_path: Path, when: str) -> None:
    site = LyingTransport(Lie(when, out=os.urandom(1 << 20).decode("latin-1")))
    with pytest.raises(AnswerUnusable):
        fetch(site, str(run), ["*"], tmp_path / "here")


WRONG = {
    "different order": "MARK 1 0\n",
    "begins elsewhere": "MARK 0 77\n",
    "unexpected form": "MARK 0 -1\n" + " " * 40,
    "longer": "MARK 0 0\n" + "z" * (2 << 20),
    "unexpected data": "z" * 100,
}


@pytest.mark.parametrize("how", WRONG)
def test_a_stream_that_was_not_asked_for(run: Path, tmp_path: Path, how: str) -> None:
    with pytest.raises(AnswerUnusable, match=how):
        fetch(LyingTransport(Lie("give()", out=WRONG[how])), str(run), ["*"], tmp_path / "here")
    assert [name for name in tree(tmp_path / "here") if "lumitui" not in name] == []


def test_wrong_bytes_of_one_file_are_one_files(run: Path, tmp_path: Path) -> None:
    for size in (900, 1000, 1100):
        site = LyingTransport(Lie("give()", swap=("b" * 1000, "x" * size)))
        brought = fetch(site, str(run), ["*"], tmp_path / f"here-{size}")
        assert [item.name for item in brought.files] == ["a", "c"]
        assert left(brought) == {"b": "it changed meanwhile"}
        assert tree(tmp_path / f"here-{size}") == ["a", "c"]


def test_hashes_of_other_files_are_not_believed(run: Path, tmp_path: Path) -> None:
    lies = f"sum {'0' * 64}  ./never\0sum {'z' * 64}  ./a\0sum x\0sum {'0' * 64}  /etc/x\0"
    brought = fetch(LyingTransport(Lie("sums()", add=lies)), str(run), ["*"], tmp_path / "here")
    assert [item.name for item in brought.files] == ["a", "b", "c"] and brought.left == ()


def test_a_list_without_end_is_ended(run: Path, tmp_path: Path) -> None:
    names = "".join(f"file 1 ./x{number}\0" for number in range(60_000))
    for lie in (Lie("walk()", out=names), Lie("walk()", out="file 1 ./x\0" * 1000, times=10**9)):
        site = LyingTransport(lie)
        with pytest.raises(InputError, match=r"More than 50,000 files .* pattern"):
            fetch(site, str(run), ["*"], tmp_path / "here")
        assert site.came < 4 << 20
    for out in ("file 1 ./" + "x" * 60_000 + "\0", "x" * 60_000):
        site = LyingTransport(Lie("walk()", out=out, times=10**9))
        with pytest.raises(AnswerUnusable):
            fetch(site, str(run), ["*"], tmp_path / "here")
        assert site.came < site_files.MOST_LIST_BYTES + 200_000


def test_too_many_real_files_are_a_sentence(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site_files, "MOST_FILES", 200)
    for number in range(250):
        (run / f"x{number}").touch()
    with pytest.raises(InputError, match="More than 200 files"):
        fetch(LyingTransport(), str(run), ["*"], tmp_path / "here")
    assert len(fetch(LyingTransport(), str(run), ["x1*", "a"], tmp_path / "here").files) == 112


def test_a_sparse_terabyte_is_not_begun(run: Path, tmp_path: Path) -> None:
    with (run / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    site = LyingTransport()
    brought = fetch(site, str(run), ["*"], tmp_path / "here")
    assert [item.name for item in brought.files] == ["a", "b", "c"]
    assert "1,099.5 GB" in left(brought)["sparse"] and site.came < 10_000
    assert tree(tmp_path / "here") == ["a", "b", "c"]


MEMORY = """
import resource, sys
from pathlib import Path
from lumitui.remote.site.errors import LumiError
from lumitui.remote.transfer.results.fetch_files import fetch
from tests.support.servers.lying_site import Lie, LyingTransport

fetch(LyingTransport(), sys.argv[1], ["*"], Path(sys.argv[2], "first"))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for when, piece in [
    ("give()", sys.argv[3].encode().decode("unicode_escape")),
    ("give()", "MARK 0 0\\n" + "z" * (1 << 20)),
    ("give()", "z" * (1 << 20)),
    ("walk()", "z" * (1 << 20)),
    ("walk()", "".join(f"file 1 ./{'n' * 200}{number}\\0" for number in range(5000))),
    ("sums()", "sum " + "0" * 64 + "  ./a\\0"),
    ("sums()", "said " + "z" * 60_000 + "\\0"),
]:
    try:
        site = LyingTransport(Lie(when, out=piece, times=300))
        print(when, fetch(site, sys.argv[1], ["*"], Path(sys.argv[2], "second")))
    except LumiError as error:
        print(when, type(error).__name__, error)
print("kib", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_what_the_site_claims_or_sends_takes_no_memory(run: Path, tmp_path: Path) -> None:
    """300 MB of each, and tar's header of a file of 3 GB, which took 1.5 GB of memory."""
    header = tarfile.TarInfo("./a")
    header.size = 3 << 30
    tar = header.tobuf(tarfile.GNU_FORMAT).decode("latin-1").replace("\0", "\\x00")
    started = child(MEMORY, str(run), str(tmp_path), tar)
    out, err = started.communicate(timeout=120)
    assert started.returncode == 0, err
    *told, kib = out.splitlines()
    assert len(told) == 7 and all(" AnswerUnusable " in line for line in told[:4]), out
    assert int(kib.split()[1]) < 100_000, out


def test_a_silent_site_is_given_up(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "STALL_SECONDS", 0.3)
    for start, out in (("", ""), ("MARK 0 0\n", ""), ("MARK 0 0\n", "a")):
        site = LyingTransport(Lie("give()", add=start, out=out, times=10**6, pause=0.02))
        with pytest.raises(LinkError, match=r"The site sent \d+ bytes in"):
            fetch(site, str(run), ["*"], tmp_path / "here")


LIES: list[tuple[Lie, type[Exception], str]] = [
    (Lie("walk()", err="e" * 1000, err_times=10**6), LinkError, "error messages"),
    (Lie("give()", err="e" * 1000, err_times=10**6), LinkError, "error messages"),
    (Lie("walk()", silent=True, code=255), LinkError, "ran no command"),
    (Lie("sums()", code=None, cut=10), LinkError, "lost"),
    (Lie("give()", out="z" * 100_000, times=10**5), LinkError, "unexpected data"),
    (Lie("walk()", noise="n" * 100_000, times=10**5), LinkError, "shell startup files"),
    (Lie("walk()", code=3, out=""), RefusedError, "stopped"),
]


def test_over_a_real_sshd(run: Path, tmp_path: Path) -> None:
    with lying_sshd(tmp_path / "lying") as server:
        site = server.server.connect()
        for number, (lie, error, words) in enumerate(LIES):
            server.tell(lie)
            with pytest.raises(error, match=words):
                fetch(site, str(run), ["*"], tmp_path / f"here-{number}")
        server.tell(Lie("walk()", add="file -5 ./bad\0"))
        brought = fetch(site, str(run), ["*"], tmp_path / "here")
        assert [item.name for item in brought.files] == ["a", "b", "c"]
        assert list(left(brought)) == ["bad"]
        site.close()


def test_complaints_without_end_are_cut_on_the_site(run: Path, tmp_path: Path) -> None:
    for number in range(300):
        (run / f"{number}{'w' * 200}").symlink_to("/proc/self/mem")
    brought = fetch(LyingTransport(), str(run), ["[0-9]*", "a"], tmp_path / "here")
    assert [item.name for item in brought.files] == ["a"] and len(left(brought)) == 300
    assert len(brought.troubles) <= 5 and sum(map(len, brought.troubles)) < 2500
