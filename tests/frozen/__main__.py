"""Renew the hashes of what users see, and print what changed.

python -m tests.frozen [KIND ...]
"""

import sys
import tempfile
from pathlib import Path

from tests.frozen.collected import KINDS, collect
from tests.frozen.kept import differences, read, write


def main(kinds: list[str]) -> None:
    """Renew some kinds, or all of them."""
    for kind in kinds or KINDS:
        with tempfile.TemporaryDirectory() as folder:
            now = collect(kind, Path(folder))
        lines = list(differences(read(kind), now))
        write(kind, now)
        print(f"{kind}: {len(lines)} of {len(now)} changed")
        for line in lines:
            print(f"  {line}")


if __name__ == "__main__":
    main(sys.argv[1:])
