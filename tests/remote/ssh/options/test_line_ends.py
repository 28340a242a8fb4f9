"""Where a line of the ssh configuration ends."""

from pathlib import Path

import pytest

from lumitui.remote.ssh.config import Login
from lumitui.remote.ssh.options.openssh import openssh_table
from lumitui.remote.ssh.options.resolve import resolve

ENDS = "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""What ends a line for Python, beside the line feed."""


def login(folder: Path, text: str) -> Login:
    path = folder / "config"
    path.write_bytes(text.encode())
    path.chmod(0o600)
    return Login("site", config=path)


@pytest.mark.parametrize("end", ENDS, ids=ascii)
def test_a_value_adds_no_option_to_what_openssh_prints(tmp_path: Path, end: str) -> None:
    found = login(tmp_path, f'Host *\nIdentityFile "/key{end}proxycommand /bin/evil"\n')
    host = resolve(found, openssh_table(found))
    assert host.proxy_command is None
    assert [str(path) for path in host.identities] == [f"/key{end}proxycommand /bin/evil"]


@pytest.mark.parametrize("end", ENDS, ids=ascii)
def test_a_comment_adds_no_option(tmp_path: Path, end: str) -> None:
    found = login(tmp_path, f"# a note{end}User eve\nHost *\nUser me\n")
    assert resolve(found, openssh_table(found)).user == "me"
