"""Files of private keys that are read or left alone; test_parity.py has those `ssh` reads too."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa, x25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from lumitui.remote.ssh.keyring import Locked, Unusable, load_key
from tests.support.servers.sshd import new_key, public

KEYS = {
    "ssh-ed25519": ed25519.Ed25519PrivateKey.generate(),
    "ecdsa-sha2-nistp384": ec.generate_private_key(ec.SECP384R1()),
    "ssh-rsa": rsa.generate_private_key(65537, 2048),
}


def pkcs8(path: Path, key: object, passphrase: bytes = b"") -> Path:
    lock = BestAvailableEncryption(passphrase) if passphrase else NoEncryption()
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock))  # type: ignore[attr-defined]
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("passphrase", [b"", b"open sesame"])
def test_pkcs8_of_each_type(tmp_path: Path, kind: str, passphrase: bytes) -> None:
    path = pkcs8(tmp_path / "key", KEYS[kind], passphrase)
    if passphrase:
        for wrong in (None, b"guess"):
            with pytest.raises(Locked):
                load_key(path, wrong)
    found = load_key(path, passphrase or None)
    assert found.get_name() == kind and found.can_sign()


@pytest.mark.parametrize(("mode", "used"), [(0o600, True), (0o400, True), (0o640, False)])
def test_a_key_that_others_may_read_is_left_alone(tmp_path: Path, mode: int, used: bool) -> None:
    path = new_key(tmp_path / "key")
    path.chmod(mode)
    if used:
        assert load_key(path, None).get_base64() == public(path).split()[1]
        return
    with pytest.raises(Unusable, match="chmod 600"):
        load_key(path, None)


@pytest.mark.parametrize("text", ["", "nonsense", "-----BEGIN PRIVATE KEY-----\nAAAA\n"])
def test_a_file_that_is_no_key(tmp_path: Path, text: str) -> None:
    path = tmp_path / "key"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(Unusable):
        load_key(path, None)


def test_a_key_that_is_not_for_ssh(tmp_path: Path) -> None:
    with pytest.raises(Unusable):
        load_key(pkcs8(tmp_path / "key", x25519.X25519PrivateKey.generate()), None)
