"""What stands in the place of a site's `sh`: it answers honestly, or as it was told to lie.

Standard library only. sshd runs it as its ForceCommand (`lying_site.lying_sshd`); the lies are in
`lies.json` in the folder that is its argument, and each request reads them again.
"""

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Lie:
    """What is answered to each request whose script has `when` in it; the first that fits counts.

    MARK in a text stands for the marker that the script brings (`records.new_marker`), LINK for the
    one that frames the whole answer.
    """

    when: str = ""
    out: str | None = None
    """Standard output (as latin-1) in the place of the honest one; None: the honest one."""
    add: str = ""
    """What comes before that."""
    swap: tuple[str, str] = ("", "")
    """A text of the honest output, and what stands there instead."""
    cut: int | None = None
    """How many bytes of the output come."""
    times: int = 1
    """How often `out` is repeated."""
    pause: float = 0.0
    """Seconds before each repetition."""
    err: str = ""
    """Standard error."""
    err_times: int = 1
    noise: str = ""
    """What comes before the opening mark, as from a shell startup file, `times` times."""
    code: int | None = 0
    """Exit status; None: the answer has no end, and the command ends."""
    silent: bool = False
    """Nothing at all is answered, and the command ends with `code`."""


def first_lie(lies: Sequence[Lie], script: str) -> Lie | None:
    """Return the lie that answers `script`, if there is one."""
    return next((lie for lie in lies if lie.when in script), None)


def lied(lie: Lie, script: str, honest: Callable[[], bytes]) -> Iterator[bytes]:
    """Yield the standard output of a lie."""
    marker = re.search(r"lumitui-[0-9a-f]{16}", script)
    name = marker[0].encode() if marker else b"MARK"
    yield lie.add.encode("latin-1").replace(b"MARK", name)
    if lie.out is None:
        old, new = (text.encode("latin-1") for text in lie.swap)
        out = honest()
        yield (out.replace(old, new) if old else out)[: lie.cut]
        return
    piece = lie.out.encode("latin-1").replace(b"MARK", name)
    for _ in range(lie.times):
        time.sleep(lie.pause)
        yield piece[: lie.cut]


def tell(folder: Path, lies: Sequence[Lie]) -> None:
    """Make the shell of `folder` answer with `lies`."""
    aside = folder / "lies.new"
    aside.write_text(json.dumps([asdict(lie) for lie in lies]))
    aside.replace(folder / "lies.json")


def _told(folder: Path) -> list[Lie]:
    rows = json.loads((folder / "lies.json").read_text())
    return [Lie(**(row | {"swap": tuple(row["swap"])})) for row in rows]


def _answer(folder: Path) -> int:
    command = os.environ["SSH_ORIGINAL_COMMAND"]
    frame = re.search(r":lumitui-[0-9a-f]{16}:", command)
    assert frame, command
    mark, lines = frame[0].encode(), list[bytes]()
    while not lines or lines[-1].strip() != b"#" + mark:
        lines.append(sys.stdin.buffer.readline())
        if not lines[-1]:
            return 1
    script = b"".join(lines[1:-1]).decode("utf-8", "replace")
    lie = first_lie(_told(folder), script)
    if lie is None:
        return _honest(command, b"".join(lines))
    out, err = sys.stdout.buffer, sys.stderr.buffer
    if lie.silent:
        return lie.code or 0
    for _ in range(lie.times if lie.noise else 0):
        out.write(lie.noise.encode("latin-1"))
    for stream in (out, err):
        stream.write(mark + b"\n")
        stream.flush()
    for _ in range(lie.err_times):
        err.write(lie.err.encode("latin-1"))
    for piece in lied(lie, script, lambda: _output(script)):
        out.write(piece.replace(b"LINK", mark))
        out.flush()
    if lie.code is not None:
        for stream in (out, err):
            stream.write(mark + b" %d\n" % lie.code)
    return 0


def _honest(command: str, payload: bytes) -> int:
    process = subprocess.Popen(["/bin/sh", "-c", command], stdin=subprocess.PIPE)
    threading.Thread(target=_feed, args=(process, payload), daemon=True).start()
    return process.wait()


def _feed(process: "subprocess.Popen[bytes]", payload: bytes) -> None:
    assert process.stdin
    with process.stdin as stdin:
        stdin.write(payload)
        stdin.flush()
        while piece := os.read(0, 1 << 16):
            stdin.write(piece)
            stdin.flush()


def _output(script: str) -> bytes:
    done = subprocess.run(["/bin/sh", "-c", script], stdin=subprocess.DEVNULL, capture_output=True)
    return done.stdout


if __name__ == "__main__":
    code = 1
    try:
        code = _answer(Path(sys.argv[1]))
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os._exit(code)
