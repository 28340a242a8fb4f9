"""Which file systems are shared with other machines."""

from pathlib import Path

import pytest

from lumitui.app.history.file.filesystem import is_shared

MOUNTS = """\
/dev/root / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
/dev/sdb /home/me/local\\040disk ext4 rw 0 0
//server/share /mnt/share cifs rw 0 0
me@host: /mnt/far fuse.sshfs rw 0 0
tmpfs /mnt/share tmpfs rw 0 0
half a line
"""


@pytest.mark.parametrize(
    ("place", "shared"),
    [
        ("/home/me/.local/share", True),
        ("/home", True),
        ("/homely", False),
        ("/home/me/local disk/data", False),
        ("/mnt/far/x", True),
        ("/mnt/share/x", False),
        ("/var", False),
    ],
)
def test_a_network_is_known_from_a_disk(tmp_path: Path, place: str, shared: bool) -> None:
    table = tmp_path / "mounts"
    table.write_text(MOUNTS)
    assert is_shared(Path(place), table) is shared
    assert is_shared(Path(place), tmp_path / "none") is False
    assert is_shared(tmp_path) is False
