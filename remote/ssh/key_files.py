"""Reads private keys in OpenSSH's form, PEM and PKCS#8, with and without a passphrase."""

import io
import os
import stat
from pathlib import Path

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from paramiko.pkey import UnknownKeyType

from lumitui.remote.ssh.link import BROKEN

_PKCS8 = (b"-----BEGIN PRIVATE KEY-----", b"-----BEGIN ENCRYPTED PRIVATE KEY-----")
_MOST_BYTES = 1 << 20


class Unusable(Exception):
    """The file has no usable key; the text is the reason, "" if it is not a key."""


class Locked(Exception):
    """The key needs a passphrase, or the passphrase is wrong."""


def load_key(path: Path, passphrase: bytes | None) -> paramiko.PKey:
    """Return the private key in the file `path`.

    Raises:
        Locked: the passphrase is missing or wrong.
        Unusable: it is not a key of a supported type, or other users may read the file.
    """
    _check_mode(path)
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES)
        if any(head in data for head in _PKCS8):
            return _pkcs8(data, passphrase)
        return paramiko.PKey.from_path(path, passphrase)  # type: ignore[arg-type]  # wants bytes
    except TypeError as error:  # cryptography raises it for a missing passphrase
        raise Locked from error
    except (*BROKEN, ValueError, UnknownKeyType, UnsupportedAlgorithm) as error:
        if passphrase is not None:
            raise Locked from error
        raise Unusable("") from error


def _check_mode(path: Path) -> None:
    """Refuse a key that other users can read, as OpenSSH does (sshkey_perm_ok)."""
    try:
        status = path.stat()
    except OSError as error:
        raise Unusable(error.strerror or "") from error
    if status.st_uid == os.getuid() and stat.S_IMODE(status.st_mode) & 0o077:
        raise Unusable("other users may read it: run `chmod 600` on it")


def _pkcs8(data: bytes, passphrase: bytes | None) -> paramiko.PKey:
    """Return the key in a PKCS#8 file, converted to OpenSSH's form, which paramiko reads."""
    key = serialization.load_pem_private_key(data, passphrase)
    kinds = (
        (rsa.RSAPrivateKey, paramiko.RSAKey),
        (ec.EllipticCurvePrivateKey, paramiko.ECDSAKey),
        (ed25519.Ed25519PrivateKey, paramiko.Ed25519Key),
    )
    for kind, reader in kinds:
        if isinstance(key, kind):
            text = key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.OpenSSH,
                serialization.NoEncryption(),
            ).decode()
            return reader.from_private_key(io.StringIO(text))
    raise UnsupportedAlgorithm("not a key for SSH")
