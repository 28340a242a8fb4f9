"""Whether a folder lies on a disk of this machine, as far as the kernel tells."""

import re
from pathlib import Path

_SHARED = re.compile(
    r"nfs\d?|cifs|smb\w*|afs|ceph|lustre|gpfs|beegfs|9p|ncpfs|glusterfs|davfs|virtiofs|vboxsf"
    r"|fuse\.(?!portal|gvfsd).*"
)
"""File systems that other machines may write as well, or that may not map shared memory."""


def is_shared(path: Path, table: Path = Path("/proc/self/mounts")) -> bool:
    """Return whether `path` is on a network's file system; False where `table` is not there."""
    try:
        text = table.read_text(encoding="utf-8", errors="surrogateescape")
        place = path.resolve()
    except (OSError, RuntimeError):  # macOS; links in a circle, which what opens it tells
        return False
    kind, depth = "", -1
    for line in text.splitlines():
        words = line.split(" ")
        if len(words) < 3:
            continue
        # A blank in a name is written \040 (proc(5)). Of two on one place the later is on top.
        point = Path(re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), words[1]))
        if place.is_relative_to(point) and len(point.parts) >= depth:
            kind, depth = words[2], len(point.parts)
    return _SHARED.fullmatch(kind) is not None
