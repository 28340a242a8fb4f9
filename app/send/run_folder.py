"""A run's folder on the site: its own copy of the code, its script, its files; in one request."""

import io
import tarfile
import time
from collections.abc import Mapping
from dataclasses import replace

from lumitui.app.history.run import Run
from lumitui.app.history.run_record import record_text
from lumitui.app.job.launch import Launch
from lumitui.remote.errors import RefusedError
from lumitui.remote.run_folder import (
    CHECKPOINTS,
    CODE,
    JOB_SCRIPT,
    RECORD,
    RECORD_FROM_SCRATCH,
    SECRETS,
    preparing_seconds,
)
from lumitui.remote.snapshots.store import archive_copy_script, copy_script
from lumitui.remote.transport.protocol import Transport
from lumitui.remote.transport.shell import REFLINK, quote


class SnapshotGone(RefusedError):
    """The code is not, or not whole, on the site any more."""


def prepare(
    run: Run,
    launch: Launch,
    transport: Transport,
    secret_values: Mapping[str, str],
    checkpoints_from: str | None,
    *,
    needed: bool,
) -> bool:
    """Make the run's folder with its own copy of the code and its files, all in one request.

    What could not be finished is removed again. Returns whether checkpoints were there to be
    copied, from `checkpoints_from`.

    Raises:
        SnapshotGone: the snapshot is gone or damaged.
        RefusedError: the checkpoints are gone, or the disk would not.
        LinkError: the link was lost.
    """
    limit = preparing_seconds(copies_checkpoints=bool(checkpoints_from))
    script = _script(run, launch, checkpoints_from, needed=needed)
    files = _files(run, launch, secret_values, copying=bool(checkpoints_from))
    result = transport.run(script, stdin=files, timeout=limit)
    if result.code in (4, 5) and "-snapshot" in result.text:
        gone = "no longer on the site" if result.code == 4 else "no longer whole on the site"
        raise SnapshotGone(f"The code of that run is {gone}.", "Resubmit with `--code current`.")
    if result.code == 3 and "no-checkpoints" in result.text:
        raise RefusedError(
            f"{checkpoints_from} has no checkpoints.", "Resubmit with `--from scratch`."
        )
    if result.code:
        words = (result.err or result.out).decode("utf-8", "replace").strip()[-400:]
        raise RefusedError(
            f"The run's folder could not be made on the site: {words or result.code}.",
            "Check the disk there: `lumitui doctor` shows space and quota, "
            "`lumitui prune` removes old code.",
        )
    return "continues" in result.text.split()


def _files(run: Run, launch: Launch, secret_values: Mapping[str, str], *, copying: bool) -> bytes:
    """The files of the folder as one compressed tar."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        _add(tar, JOB_SCRIPT, launch.script, 0o700)
        # Were the laptop's history lost: see recovering.py.
        _add(tar, RECORD, record_text(run), 0o600)
        for file in launch.files:
            _add(tar, file.name, file.content, file.mode)
        if launch.spec.secrets:
            lines = [f"{name}={quote(secret_values[name])}\n" for name in launch.spec.secrets]
            _add(tar, SECRETS, "".join(lines), 0o600)
        if copying:
            _add(tar, RECORD_FROM_SCRATCH, record_text(replace(run, resumed_from=None)), 0o600)
    return archive.getvalue()


def _script(run: Run, launch: Launch, checkpoints_from: str | None, *, needed: bool) -> str:
    folder, snapshot = quote(run.folder), f"{run.root}/code/{run.snapshot}"
    packed = launch.spec.ship == "archive"
    lines = [
        "set -e",
        "umask 077",
        f"mkdir -p {quote(run.folder.rpartition('/')[0])}",
        f"mkdir -m 700 {folder}",  # a default ACL above outweighs the umask
        "made=",
        f'undo() {{ [ -n "$made" ] || {{ chmod -R u+w {folder}; cd / && rm -rf {folder}; }}; }}',
        "trap undo EXIT; trap 'exit 74' HUP INT TERM PIPE",
        f"cd {folder}",
        "tar -xzf -",
        archive_copy_script(snapshot, run.folder)
        if packed
        else copy_script(snapshot, f"{run.folder}/{CODE}"),
    ]
    # An archive's are made by the job, where it unpacks.
    for name, target in () if packed else launch.spec.links.items():
        path = f"{CODE}/{name.rstrip('/')}"
        taken = quote(f"links: {name} is already a file or folder of the code")
        lines += [
            f"mkdir -p {quote(path.rpartition('/')[0])}",
            # ln would put the link into a folder that is there.
            f"if [ -e {quote(path)} ] || [ -L {quote(path)} ]; then",
            f"printf '%s\\n' {taken} >&2; exit 1; fi",
            f"ln -s -- {quote(target)} {quote(path)}",
        ]
    if checkpoints_from:
        source = quote(f"{checkpoints_from}/{CHECKPOINTS}")
        missing = "echo no-checkpoints; exit 3" if needed else f"mv {RECORD_FROM_SCRATCH} {RECORD}"
        there = f'[ -n "$(ls -A {source} 2>/dev/null)" ]'
        copied = f"cp -pR $reflink {source} {CHECKPOINTS}; rm {RECORD_FROM_SCRATCH}; echo continues"
        lines.append(f"{REFLINK}\nif {there}; then {copied}; else {missing}; fi")
    return "\n".join([*lines, "made=yes"])


def _add(tar: tarfile.TarFile, name: str, text: str, mode: int) -> None:
    # A secret of the environment may have bytes that are not UTF-8: they arrive as they are.
    content = text.encode("utf-8", "surrogateescape")
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = len(content), mode, int(time.time())
    tar.addfile(info, io.BytesIO(content))
