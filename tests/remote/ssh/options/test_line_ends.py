"""Where a line of the ssh configuration ends, with OpenSSH and without it."""

from pathlib import Path

import pytest

from lumitui.remote.site.errors import LinkError
from lumitui.remote.ssh.config import Login
from lumitui.remote.ssh.options.resolve import resolve
from lumitui.remote.ssh.options.sources import openssh_table, paramiko_table

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
    for table in (openssh_table(found), paramiko_table(found)):
        assert resolve(found, table).user == "me"


@pytest.mark.parametrize("char", [*ENDS, "\0", "\xa0", "\u2003"], ids=ascii)
def test_without_openssh_an_odd_blank_is_named(tmp_path: Path, char: str) -> None:
    found = login(tmp_path, f"Host *\nUser{char}me\n")
    with pytest.raises(LinkError, match=f"line 2 has the character U\\+{ord(char):04X}"):
        paramiko_table(found)


def test_without_openssh_lines_may_end_as_on_windows(tmp_path: Path) -> None:
    found = login(tmp_path, "Host *\r\n  User me\r\n")
    assert resolve(found, paramiko_table(found)).user == "me"
