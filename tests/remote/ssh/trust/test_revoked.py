"""Lists of revoked keys that are damaged revoke every key; test_parity.py has the others."""

import base64
import subprocess
from pathlib import Path

import pytest

from lumitui.remote.site.errors import LinkError
from lumitui.remote.ssh.trust.known_hosts import HostKey
from lumitui.remote.ssh.trust.revoked import check_revoked
from tests.support.servers.sshd import new_key, public


def host_key(key: Path) -> HostKey:
    kind, text = public(key).split()
    return HostKey(kind, base64.b64decode(text))


def check(path: Path, key: HostKey) -> str:
    """Return what is said of `key`; empty: it is not revoked."""
    try:
        check_revoked([path], "site", key.blob, key.fingerprint)
    except LinkError as error:
        assert str(path) in error.message and error.hint
        return error.message
    return ""


@pytest.fixture
def krl(tmp_path: Path) -> Path:
    """A KRL with each kind of section that ssh-keygen writes."""
    authority, gone = new_key(tmp_path / "authority"), new_key(tmp_path / "gone")
    spec = tmp_path / "spec"
    spec.write_text(
        f"serial: 1\nserial: 5-9\nserial: 70-200\nid: someone\nkey: {public(gone)}\n"
        f"sha1: {public(gone)}\nsha256: {public(gone)}\n"
    )
    made = tmp_path / "krl"
    command = ["ssh-keygen", "-q", "-k", "-z", "7", "-f", str(made), "-s", f"{authority}.pub"]
    subprocess.run([*command, str(spec)], check=True)
    return made


def test_a_list_with_every_kind_of_section_is_read(krl: Path, tmp_path: Path) -> None:
    assert "is revoked in" in check(krl, host_key(tmp_path / "gone"))
    assert check(krl, host_key(new_key(tmp_path / "other"))) == ""


def test_a_list_cut_anywhere_revokes_every_key(krl: Path, tmp_path: Path) -> None:
    whole, other = krl.read_bytes(), host_key(new_key(tmp_path / "other"))
    ends = []
    for size in range(9, len(whole)):
        krl.write_bytes(whole[:size])
        if not check(krl, other):
            ends.append(size)
    # A file that ends between two sections is complete; OpenSSH takes it too.
    for size in ends:
        krl.write_bytes(whole[:size])
        done = subprocess.run(["ssh-keygen", "-Q", "-f", str(krl), f"{tmp_path}/other.pub"])
        assert done.returncode == 0
    assert len(ends) < 6


@pytest.mark.parametrize(
    "tail",
    [
        b"\x06\0\0\0\0",  # an unknown section
        b"\x04\0\0\0\x01x\0\0\0\0",  # a signature, which OpenSSH refuses since 9.4
        b"\xff\0\0\0\x0d\0\0\0\x03abc\x01\0\0\0\x01x",  # an extension that must be understood
        b"\x03\0\0\0\x05\0\0\0\x01x",  # a hash of one byte
        b"\x01\0\0\0\x0d\0\0\0\0\0\0\0\0\x77\0\0\0\0",  # an unknown section about certificates
        b"\x02\xff\xff\xff\xff",
    ],
)
def test_what_is_not_understood_revokes_every_key(krl: Path, tmp_path: Path, tail: bytes) -> None:
    krl.write_bytes(krl.read_bytes() + tail)
    assert "cannot be read" in check(krl, host_key(new_key(tmp_path / "other")))


def test_an_extension_that_may_be_passed_over(krl: Path, tmp_path: Path) -> None:
    krl.write_bytes(krl.read_bytes() + b"\xff\0\0\0\x0d\0\0\0\x03abc\0\0\0\0\x01x")
    assert check(krl, host_key(new_key(tmp_path / "other"))) == ""


def test_a_list_that_may_not_be_read(tmp_path: Path) -> None:
    key = host_key(new_key(tmp_path / "key"))
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert "cannot be read" in check(loop, key)
    assert "cannot be read" in check(tmp_path / "missing", key)
