"""Which files a snapshot on a site has, and the hash of each: read from its checksums."""

import re
from collections.abc import Sequence

from lumitui.remote.site.shell_text import quote
from lumitui.remote.transport.transport import Transport

MOST_BYTES = 16 << 20
"""Most bytes of the checksums of one snapshot: some 100,000 files."""
_LINE = re.compile(r"\\?([0-9a-f]{64})  \./(.+)")
_ONE = """\
echo "= {id}"; [ -f {sums} ] && head -c {most} {sums}; echo
"""


def read_sums(
    transport: Transport, folder: str, snapshots: Sequence[str]
) -> dict[str, dict[str, str]]:
    """Return the hash of each file of `snapshots` in `folder`, by the snapshot's id and its path.

    A snapshot that is not there any more, or whose checksums cannot be read, is left out.

    Raises:
        LinkError, LinkLost: as `Transport.run`.
    """
    script = "".join(
        _ONE.format(id=one, sums=quote(f"{folder}/{one}.sums"), most=MOST_BYTES)
        for one in snapshots
        if re.fullmatch("[0-9a-f]+", one)
    )
    if not script:
        return {}
    sums: dict[str, dict[str, str]] = {}
    files: dict[str, str] = {}
    broken: set[str] = set()
    current = ""
    for line in transport.run(script).out.decode("utf-8", "replace").splitlines():
        if line.startswith("= "):
            current = line[2:]
            files = sums.setdefault(current, {})
        elif match := _LINE.fullmatch(line):
            files[match[2]] = match[1]
        elif line:
            broken.add(current)
    return {one: files for one, files in sums.items() if files and one not in broken}
