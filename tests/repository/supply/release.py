"""`make release-check`: what must hold before a release is published; it publishes nothing.

Wheel and sdist are built twice from the last commit, in different folders, and must have the same
bytes.
"""

import gzip
import hashlib
import io
import os
import pty
import re
import select
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from tests.support.places import ROOT

_TOUR_SECONDS = 60.0
"""How long the tour may take until its first line on a busy machine."""


def main() -> int:
    """Check all; return 1 at the first thing that is wrong."""
    try:
        version = checked_version()
        with tempfile.TemporaryDirectory(prefix="lumitui-release-") as folder:
            place = Path(folder)
            first, second = (built(place / name) for name in ("first", "second"))
            if first != second:
                return _wrong(f"two builds differ: {first} and {second}")
            (wheel,) = (place / "first" / "dist").glob("*.whl")
            used(wheel, place / "venv", version)
    except AssertionError as error:
        return _wrong(str(error))
    for name, digest in first.items():
        print(f"sha256:{digest}  {name}")
    return 0


def checked_version() -> str:
    """Return the version, which pyproject.toml alone has, and of which CHANGELOG.md tells first.

    Raises:
        AssertionError: that is not so, or the working tree is not clean.
    """
    changed = _out("git", "status", "--porcelain")
    assert not changed, f"the working tree is not clean:\n{changed}"
    found = re.search(r'(?m)^version = "(.+)"$', (ROOT / "pyproject.toml").read_text())
    assert found, "pyproject.toml has no version"
    heading = re.search(r"(?m)^## (\S+)", (ROOT / "CHANGELOG.md").read_text())
    assert heading and heading[1] == found[1], f"CHANGELOG.md does not begin with {found[1]}"
    places = ["app", "remote", "templates", "setup.py", "CITATION.cff"]
    again = _out("git", "grep", "-lF", f'"{found[1]}"', "--", *places, fails=True)
    assert not again, f"the version is also in {again}"
    return found[1]


def built(folder: Path) -> dict[str, str]:
    """Build wheel and sdist of the last commit in `folder`; return their hashes by name."""
    source = folder / "lumitui"
    source.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True)
    subprocess.run(["tar", "-x"], cwd=source, input=archive.stdout, check=True)
    moment = _out("git", "log", "-1", "--format=%ct")
    argv = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder / "dist")]
    environ = os.environ | {"SOURCE_DATE_EPOCH": moment}
    done = subprocess.run(argv, cwd=source, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    (sdist,) = (folder / "dist").glob("*.tar.gz")
    sdist.write_bytes(same_bytes(sdist.read_bytes(), int(moment)))
    files = sorted((folder / "dist").iterdir())
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def same_bytes(sdist: bytes, moment: int) -> bytes:
    """Return an sdist without what setuptools writes of the machine: times, owner, order."""
    out = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(sdist)) as old,
        gzip.GzipFile("", "wb", fileobj=out, mtime=moment) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda item: item.name):
            member.mtime, member.uid, member.gid, member.uname, member.gname = moment, 0, 0, "", ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.pax_headers = {}
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    return out.getvalue()


def used(wheel: Path, folder: Path, version: str) -> None:
    """Install the wheel in an empty environment, and run what a user runs first."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    program = folder / "bin" / "lumitui"
    subprocess.run([folder / "bin" / "pip", "install", "--quiet", wheel], check=True)
    assert _out(program, "--version") == f"lumitui {version}"
    assert "Your first job" in _out(program, "docs")
    script = folder / "job.sh"
    script.write_text("#!/bin/bash\n#SBATCH --nodes=1\nsrun python train.py\n")
    assert "time-missing" in _out(program, "lint", script, fails=True)
    print(f"the tour began after {tour_seconds(program):.1f} s")


def tour_seconds(program: Path) -> float:
    """Return the seconds until the tour shows its first line on a terminal; then quit it."""
    began, seen = time.monotonic(), b""
    process, screen = pty.fork()
    if process == 0:
        os.environ |= {"TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"}
        os.execv(program, [str(program), "tour"])
    while b"Tour 1/8" not in seen:
        assert time.monotonic() - began < _TOUR_SECONDS, f"the tour did not begin: {seen[-500:]!r}"
        if select.select([screen], [], [], 0.2)[0]:
            seen += os.read(screen, 1 << 16)
    took = time.monotonic() - began
    os.write(screen, b"q")
    while select.select([screen], [], [], 10)[0]:
        try:
            os.read(screen, 1 << 16)
        except OSError:  # it has ended
            break
    assert os.waitpid(process, 0)[1] == 0, "the tour did not end well"
    return took


def _out(*argv: str | Path, fails: bool = False) -> str:
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True)
    assert fails or done.returncode == 0, done.stderr
    return done.stdout.strip()


def _wrong(why: str) -> int:
    print(f"release-check: {why}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
