"""Snapshots and fetched files, over a shell of this machine, busybox, and a real SSH server."""

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lumitui.remote.site.errors import InputError, RefusedError
from lumitui.remote.site.shell_text import quote
from lumitui.remote.source.manifest import Manifest
from lumitui.remote.source.scan import scan, source_of
from lumitui.remote.transfer.contents.tar import Packed
from lumitui.remote.transfer.snapshots.prune import prune
from lumitui.remote.transfer.snapshots.snapshot_store import copy_script
from lumitui.remote.transfer.snapshots.upload import Synced, sync
from lumitui.remote.transport.local import Local
from lumitui.remote.transport.transport import Transport
from tests.support.files.snapshots import left_over, same, writable
from tests.support.servers.transports import Cut

Send = Callable[..., Synced]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for path in ("train.py", "pkg/a.py", "pkg/b.py", "it's $HOME/-x y.txt", "empty", "old/gone.py"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("" if path == "empty" else f"content of {path}\n" * 50)
    (root / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("pkg/a.py")
    (root / ("deep" * 20) / ("name" * 20)).mkdir(parents=True)
    (root / ("deep" * 20) / ("name" * 20) / "long.txt").write_text("long")
    return root


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "the site's" / "code")


@pytest.fixture
def send(transport: Transport, folder: str, project: Path) -> Send:
    """Sends the project as it is now."""

    def now(known: Manifest | None = None, manifest: Manifest | None = None) -> Synced:
        return sync(transport, folder, manifest or scan(project), source_of(project), known)

    return now


def test_the_first_time_everything_is_sent(send: Send, project: Path, folder: str) -> None:
    manifest = scan(project)
    done = send()
    assert (done.snapshot, done.id) == (f"{folder}/{manifest.id}", manifest.id)
    assert (done.files_sent, done.requests) == (len(manifest.entries), 2)
    assert same(done.snapshot, manifest) and not writable(done.snapshot)
    assert os.stat(folder).st_mode & 0o077 == os.stat(done.snapshot).st_mode & 0o077 == 0
    assert sorted(os.listdir(folder)) == [manifest.id, f"{manifest.id}.sums"]


def test_nothing_changed_is_one_request_that_sends_nothing(send: Send, project: Path) -> None:
    send()
    for known in (scan(project), None):
        done = send(known)
        assert (done.requests, done.files_sent, done.bytes_sent) == (1, 0, 0)


def test_changes_are_one_request_with_what_changed(send: Send, project: Path, folder: str) -> None:
    before = scan(project)
    first = send()
    (project / "train.py").write_text("new\n")
    (project / "pkg" / "new.py").write_text("new")
    shutil.rmtree(project / "old")
    (project / "pkg" / "b.py").unlink()  # a file becomes a folder
    (project / "pkg" / "b.py").mkdir()
    (project / "pkg" / "b.py" / "c").write_text("c")
    shutil.rmtree(project / "it's $HOME")  # a folder becomes a file
    (project / "it's $HOME").write_text("file")
    (project / "link").unlink()  # a link points elsewhere
    (project / "link").symlink_to("train.py")
    (project / "run.sh").chmod(0o644)  # only the mode differs
    done = send(before)
    assert (done.requests, done.files_sent) == (1, 6)
    assert same(done.snapshot, scan(project)) and not writable(done.snapshot)
    assert same(first.snapshot, before)
    assert not os.path.exists(f"{done.snapshot}/old") and not left_over(folder)


def test_snapshots_share_no_file(send: Send, project: Path) -> None:
    before = scan(project)
    first = send()
    (project / "train.py").write_text("new\n")
    second = send(before)
    one, other = (os.stat(f"{done.snapshot}/pkg/a.py") for done in (first, second))
    assert one.st_ino != other.st_ino and one.st_nlink == 1


@pytest.mark.parametrize("harm", ["folder", "file", "content"])
def test_a_purged_or_changed_base_is_found_and_all_is_sent(
    send: Send, project: Path, transport: Transport, harm: str
) -> None:
    before = scan(project)
    at = quote(send().snapshot)
    deeds = {
        "folder": f"chmod -R u+w {at}; rm -rf {at}",
        "file": f"chmod u+w {at}/pkg; rm -f {at}/pkg/a.py",
        "content": f"chmod u+w {at}/pkg/a.py; echo other >{at}/pkg/a.py",
    }
    assert transport.run(deeds[harm]).code == 0
    (project / "train.py").write_text("new\n")
    done = send(before)
    assert (done.requests, done.files_sent) == (2, len(before.entries))
    assert same(done.snapshot, scan(project))


HARMS = (
    "rm -rf {at}", "echo other >{at}/pkg/a.py", "echo other >{at}/more", "rm -f {at}/link",
    "chmod a-x {at}/run.sh", "ln -sf other {at}/link", "rm -f {at}.sums",
)  # fmt: skip


def test_a_damaged_snapshot_is_found_and_made_again(
    send: Send, project: Path, transport: Transport, folder: str
) -> None:
    manifest = scan(project)
    at = quote(send().snapshot)
    for harm in HARMS:
        assert transport.run(f"chmod -R u+w {at}; " + harm.format(at=at)).code == 0
        done = send(manifest, manifest)
        assert (done.requests, done.files_sent) == (2, len(manifest.entries)), harm
        assert same(done.snapshot, manifest) and not left_over(folder), harm


def test_many_removals_are_not_named_in_the_script(
    send: Send, project: Path, transport: Transport
) -> None:
    (project / "many").mkdir()
    for number in range(1200):
        (project / "many" / f"{number}").write_text("")
    before = scan(project)
    send()
    shutil.rmtree(project / "many")
    done = send(before)
    assert done.requests == 2 and same(done.snapshot, scan(project))


def test_several_at_once_make_one_snapshot(send: Send, project: Path, folder: str) -> None:
    with ThreadPoolExecutor(4) as threads:
        done = [future.result() for future in [threads.submit(send) for _ in range(4)]]
    assert len({item.snapshot for item in done}) == 1
    assert same(done[0].snapshot, scan(project))
    assert not left_over(folder) and len(os.listdir(folder)) == 2


def test_an_empty_project_and_one_without_files(send: Send, project: Path) -> None:
    shutil.rmtree(project)
    project.mkdir()
    assert same(send().snapshot, Manifest(()))
    (project / "dangling").symlink_to("later")
    assert same(send(Manifest(())).snapshot, scan(project))


def test_every_file_of_a_long_list_is_checked(
    transport: Transport, folder: str, tmp_path: Path
) -> None:
    # Long lists are checked by two processes, half each.
    root = tmp_path / "many"
    root.mkdir()
    for index in range(600):
        (root / f"file{index:03d}.py").write_text(f"{index}\n")
    manifest = scan(root)
    first = sync(transport, folder, manifest, source_of(root))
    again = sync(transport, folder, manifest, source_of(root), manifest)
    assert (again.requests, again.files_sent) == (1, 0)
    for number in (299, 300):
        damaged = Path(first.snapshot) / f"file{number:03d}.py"
        damaged.chmod(0o644)
        damaged.write_text("xxx\n"[: len(damaged.read_text())])
        again = sync(transport, folder, manifest, source_of(root), manifest)
        assert again.files_sent == 600, number
    assert same(again.snapshot, manifest)


def test_what_is_packed_ahead_ends_with_who_takes_it() -> None:
    def noise() -> Iterator[bytes]:
        for _ in range(64):
            yield os.urandom(1 << 18)
        raise InputError("a file changed")

    def packing() -> list[str]:
        return [thread.name for thread in threading.enumerate() if thread.name == "pack ahead"]

    stream = Packed().stream(noise())
    assert next(stream) and packing()
    stream.close()  # type: ignore[attr-defined]  # a generator
    assert not packing()
    with pytest.raises(InputError, match="a file changed"):
        list(Packed().stream(noise()))
    assert not packing()


@pytest.mark.slow
def test_an_openssl_that_does_not_work_decides_nothing(
    project: Path, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "openssl"
    program.parent.mkdir()
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    manifest = scan(project)
    for body in ("exit 1", 'shift 3; for f; do echo "$(printf %064d 0) *$f"; done', "yes"):
        program.write_text(f"#!/bin/sh\n{body} | head -n 9\n")
        program.chmod(0o755)
        done = sync(Local(), folder, manifest, source_of(project))
        assert same(done.snapshot, manifest), body
        assert sync(Local(), folder, manifest, source_of(project)).files_sent == 0, body
        damaged = Path(done.snapshot) / "pkg" / "a.py"
        damaged.chmod(0o600)
        damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
        again = sync(Local(), folder, manifest, source_of(project))
        assert again.files_sent == len(manifest.entries) and same(again.snapshot, manifest), body


def test_a_file_that_changed_since_ends_it_and_leaves_nothing(
    send: Send, project: Path, folder: str, transport: Transport
) -> None:
    for text in ("longer than it was " * 100, "short"):
        manifest = scan(project)
        (project / "train.py").write_text(text)
        with pytest.raises(InputError, match=r"'train\.py' changed"):
            send(manifest=manifest)
    (project / "train.py").unlink()
    with pytest.raises(InputError, match=r"'train\.py' changed"):
        send(manifest=manifest)

    def names() -> list[str]:
        return transport.run(f"cd {quote(folder)} && ls -A").text.split()

    deadline = time.monotonic() + 30
    while names() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert names() == []


def test_a_folder_that_cannot_be_made_is_refused_with_the_site_s_words(
    transport: Transport, project: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RefusedError, match=r"(?i)not a directory|file exists"):
        sync(transport, f"{tmp_path}/file/code", scan(project), source_of(project))


def test_a_full_disk_is_refused_and_leaves_nothing(
    transport: Transport, project: Path, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(disk)]
    if subprocess.run(["/bin/sh", "-c", 'PATH=/usr/sbin:/usr/bin:/sbin:/bin; exec "$@"', "-",
                       *command], capture_output=True).returncode:  # fmt: skip
        pytest.skip("mounting a small disk needs root")
    try:
        (project / "big").write_bytes(os.urandom(1_000_000))
        with pytest.raises(RefusedError, match=r"(?i)no space left"):
            sync(transport, f"{disk}/code", scan(project), source_of(project))
        assert os.listdir(disk / "code") == []
    finally:
        subprocess.run(["/bin/umount", disk], check=True)


def test_what_a_cut_connection_left_long_ago_is_removed(
    send: Send, project: Path, folder: str
) -> None:
    for name, age in (("old", 3 * 86400), ("young", 3600)):
        left = Path(folder) / f".incoming-{name}"
        left.mkdir(parents=True)
        (left / "file").write_text("")
        left.chmod(0o500)
        os.utime(left, (time.time() - age,) * 2)
    send()
    assert left_over(folder) == [".incoming-young"]


def test_half_an_upload_makes_nothing(transport: Transport, project: Path, folder: str) -> None:
    manifest = scan(project)
    with pytest.raises(RefusedError):
        sync(Cut(transport), folder, manifest, source_of(project))
    assert os.listdir(folder) == []


# A run's own copy


def test_a_run_s_copy_is_its_own_and_writable(
    send: Send, transport: Transport, project: Path, tmp_path: Path
) -> None:
    snapshot, target = send().snapshot, f"{tmp_path}/a run/code"
    script = f"mkdir -p {quote(os.path.dirname(target))}\n{copy_script(snapshot, target)} || exit 9"
    assert transport.run(script).code == 0
    assert same(target, scan(project))
    assert transport.run(f"cd {quote(target)} && echo mine >pkg/a.py && ./run.sh").text == "ran\n"
    assert same(snapshot, scan(project))
    assert transport.run(script).code == 0  # repeated, as after a lost answer
    assert Path(target, "pkg/a.py").read_text() == "mine\n"
    assert not [name for name in os.listdir(target) if name.startswith("code")]


def test_a_copy_of_a_damaged_snapshot_is_not_made(
    send: Send, transport: Transport, tmp_path: Path
) -> None:
    snapshot, target = send().snapshot, f"{tmp_path}/code"
    assert (
        transport.run(f"chmod u+w {quote(snapshot)}/*; echo x >{quote(snapshot)}/empty").code == 0
    )
    result = transport.run(f"{copy_script(snapshot, target)} || exit 9")
    assert (result.code, result.text) == (9, "damaged-snapshot\n")
    assert transport.run(f"{copy_script('/no/such', target)} || exit 9").code == 9
    assert not [name for name in os.listdir(tmp_path) if name.startswith("code")]


def test_pruning_keeps_what_is_named(
    send: Send, transport: Transport, project: Path, folder: str
) -> None:
    kept = send().id
    (project / "train.py").write_text("other")
    gone = send().id
    (Path(folder) / "notes").mkdir()
    held = 1 + sum(len(folders + files) for _, folders, files in os.walk(f"{folder}/{gone}"))
    done = prune(transport, folder, {kept})
    assert done.snapshots == (gone,) and done.files == held + 1 and done.bytes > 0
    assert sorted(os.listdir(folder)) == sorted([kept, f"{kept}.sums", "notes"])
    assert prune(transport, folder, {kept}).snapshots == ()
    assert prune(transport, f"{folder}/none", set()).snapshots == ()
