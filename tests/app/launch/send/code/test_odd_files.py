"""Every odd thing a project may hold: it arrives as it is, or it is refused with a sentence."""

import os
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lumitui.remote.site.errors import InputError, RefusedError
from lumitui.remote.source import scan as scanning
from lumitui.remote.source.ignore import Ignoring
from lumitui.remote.source.project_walk import FolderWalk
from lumitui.remote.source.scan import scan, source_of
from lumitui.remote.transfer.snapshots.snapshot_store import refuse_names, sync
from lumitui.remote.transport.local import Local
from lumitui.remote.transport.transport import Transport
from tests.support.files.snapshots import same

NAMES = [
    "-rf", "--", "- -", "tab\there", "quote'", 'double"', "back\\slash", "\\", "$(touch gone)",
    "`touch gone`", "a;b|c&d", "star*?[x]", " lead", "trail ", "~", "#hash", "!bang", "%d%s",
    "new\\nline", "bell\x07", "esc\x1b[31m", "del\x7f", "ünïcödé", "e\u0301", "日本", "😀",
    ".hidden", "x" * 255, "...", "*", "\u2028", "\u202eevil", "nbsp\u00a0", "A.py", "a.py", "CON",
    "Icon",
]  # fmt: skip
"""Names that a shell, tar, sha256sum or another file system might take otherwise."""


def test_odd_names_arrive_as_they_are(transport: Transport, tmp_path: Path) -> None:
    root = tmp_path / "p"
    plain = [name for name in NAMES if "\\" not in name]
    gnu = transport.run("sha256sum --version").code == 0
    for name in NAMES if gnu else plain:
        (root / name / "in").mkdir(parents=True)
        (root / name / "in" / name).write_text(name)
        (root / f"{name[:200]} link").symlink_to(f"{name}/in/{name}")
    (root / "empty").write_bytes(b"")
    manifest = scan(root)
    assert len(manifest.entries) == 2 * len(NAMES if gnu else plain) + 1
    done = sync(transport, f"{tmp_path}/code", manifest, source_of(root))
    assert done.requests == 2 and same(done.path, manifest)
    assert sync(transport, f"{tmp_path}/code", manifest, source_of(root)).requests == 1
    (root / "-rf" / "in" / "-rf").write_text("changed")
    (root / "*" / "in" / "*").unlink()
    changed = scan(root)
    done = sync(transport, f"{tmp_path}/code", changed, source_of(root), manifest)
    assert done.requests == 1 and same(done.path, changed)
    if not gnu:  # busybox: then it is said which name is meant
        (root / "back\\slash").write_text("")
        with pytest.raises(RefusedError, match="backslash"):
            sync(transport, f"{tmp_path}/code", scan(root), source_of(root))


def test_links_inside_arrive_as_links(transport: Transport, tmp_path: Path) -> None:
    root = tmp_path / "p"
    (root / "d" / "e").mkdir(parents=True)
    (root / "d" / "file").write_text("x")
    targets = {"to file": "d/file", "to folder": "d", "dangling": "no/where", "loop": "loop",
               "ring a": "ring b", "ring b": "ring a", "d/up": "../d/e/..", "d/e/self": ".",
               "through": "to folder/file", "-dash": "-rf"}  # fmt: skip
    for name, target in targets.items():
        (root / name).symlink_to(target)
    manifest = scan(root)
    assert {item.path: item.target for item in manifest.entries if item.target} == targets
    done = sync(transport, f"{tmp_path}/code", manifest, source_of(root))
    assert same(done.path, manifest)


def test_a_link_that_leads_out_through_others_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "p"
    (root / "a" / "b" / "c").mkdir(parents=True)
    (root / "a" / "b" / "c" / "up").symlink_to("../..")
    (root / "out").symlink_to("a/b/c/up/../..")  # a/b by its text, the project's parent in truth
    with pytest.raises(InputError, match=r"'out' points outside the project"):
        scan(root)


def fifo(path: Path) -> None:
    os.mkfifo(path)


def bound(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # the path of a socket is at most 107 bytes
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(path.name)
    os.chdir(here)


def device(path: Path) -> None:
    if subprocess.run(["mknod", path, "c", "1", "3"], capture_output=True).returncode:
        pytest.skip("making a device needs root")


def raw(name: bytes) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        with open(os.fsencode(path.parent) + b"/" + name, "wb"):
            pass

    return make


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (fifo, "not a file or folder"),
        (bound, "not a file or folder"),
        (device, "not a file or folder"),
        (raw(b"two\nlines"), "line break"),
        (raw(b"Icon\r"), "line break"),
        (raw(b"latin\xe9"), "not UTF-8"),
        (raw(b"half\xf0\x9f"), "not UTF-8"),
        (lambda path: path.symlink_to("/etc/hosts"), "points outside the project"),
        (lambda path: path.symlink_to(".."), "points outside the project"),
        (lambda path: path.symlink_to(os.fsdecode(b"\xe9")), "points to a name"),
        (lambda path: path.symlink_to("a\nb"), "points to a name"),
    ],
    ids=["fifo", "socket", "device", "newline", "return", "latin-1", "cut utf-8", "absolute",
         "parent", "link to latin-1", "link to lines"],
)  # fmt: skip
def test_what_cannot_travel_is_refused(
    tmp_path: Path, make: Callable[[Path], None], words: str
) -> None:
    (tmp_path / "fine").write_text("")
    make(tmp_path / "odd")
    with pytest.raises(InputError, match=words) as refused:
        scan(tmp_path)
    assert refused.value.hint.startswith("Exclude them in .lumituiignore")
    (tmp_path / ".lumituiignore").write_bytes(b"*\n!fine\n")
    assert [entry.path for entry in scan(tmp_path).entries] == ["fine"]


@contextmanager
def as_nobody() -> Iterator[Path]:
    """A folder of a user whom permissions hold, and to be that user within the block."""
    if os.geteuid() != 0:
        with tempfile.TemporaryDirectory() as own:
            yield Path(own)
        return
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chown(folder, 65534, 65534)
        os.seteuid(65534)
        try:
            yield Path(folder)
        finally:
            os.seteuid(0)


@pytest.mark.parametrize("what", ["file", "folder", "list", "root"])
def test_what_cannot_be_read_is_refused(what: str) -> None:
    with as_nobody() as root:
        for name in ("d/file", "other", ".gitignore"):
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text("")
        locked = {"file": root / "d" / "file", "folder": root / "d", "root": root,
                  "list": root / ".gitignore"}[what]  # fmt: skip
        locked.chmod(0)
        words = "'d/file'" if what == "file" else "'d/'" if what == "folder" else ""
        with pytest.raises(InputError, match=rf"{words}.*cannot be read"):
            scan(root)
        locked.chmod(0o700)


@pytest.mark.parametrize("change", ["vanishes", "grows", "is replaced", "becomes a pipe"])
@pytest.mark.parametrize("moment", ["stat", "hash", "send"])
def test_what_changes_meanwhile_is_reported_and_never_sent_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, moment: str
) -> None:
    root, folder = tmp_path / "p", tmp_path / "code"
    root.mkdir()
    for name in ("a", "b", "c"):
        (root / name).write_text(name * 1000)

    def alter() -> None:
        path = root / "b"
        if change == "grows":
            path.write_text("b" * 1001)
            return
        path.unlink()
        if change == "is replaced":
            path.write_text("B" * 1000)
        elif change == "becomes a pipe":
            os.mkfifo(path)

    if moment == "stat":
        plain = FolderWalk._take

        def late(walk: FolderWalk, entry: "os.DirEntry[str]", path: str, rules: Ignoring) -> None:
            if path == "b":
                alter()
            plain(walk, entry, path, rules)

        monkeypatch.setattr(FolderWalk, "_take", late)
    elif moment == "hash":
        opened = scanning.opened

        def first(source: Path) -> int:
            if source.name == "a":
                alter()
            return opened(source)

        monkeypatch.setattr(scanning, "opened", first)
    try:
        state = scan(root)
        if moment == "send":
            alter()
        done = sync(Local(), str(folder), state, source_of(root))
    except InputError as error:
        assert "'b'" in error.message and "Traceback" not in error.message
        assert not folder.exists() or not [name for name in os.listdir(folder) if len(name) == 24]
    else:
        # Seen in time: then it is the new state that was sent, whole.
        assert moment == "stat" and same(done.path, scan(root))


def test_names_that_differ_in_case_arrive_and_their_clash_is_named(tmp_path: Path) -> None:
    for name in ("Model.py", "model.py", "other.py"):
        (tmp_path / name).write_text(name)
    if len(os.listdir(tmp_path)) != 3:
        pytest.skip("this disk does not tell them apart")
    state = scan(tmp_path)
    assert len(state.entries) == 3
    with pytest.raises(RefusedError, match=r"'Model\.py' and 'model\.py' differ only in case"):
        refuse_names(state, "/there")
    (tmp_path / "Model.py").unlink()
    refuse_names(scan(tmp_path), "/there")
