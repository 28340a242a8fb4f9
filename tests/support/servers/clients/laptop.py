"""A person's laptop: keys in every form, lists of revoked keys, and the server that it reaches."""

import base64
import getpass
import hmac
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.servers.clients.cases import KNOWN, Case
from tests.support.servers.keys import add as add_to_agent
from tests.support.servers.keys import agent, certify
from tests.support.servers.sshd import Sshd, new_key, public, running_sshd

DIAL = """
import socket, sys
far = socket.create_connection((sys.argv[1], int(sys.argv[2])))
near = socket.socket(fileno=1)
socket.send_fds(near, [b"x"], [far.fileno()])
"""


@dataclass
class Laptop:
    """A folder with keys, lists of revoked keys and certificates, and the server they are for."""

    server: Sshd
    folder: Path

    @property
    def names(self) -> dict[str, str]:
        server, key = self.server, public(self.server.host_key)
        return {
            "F": str(self.folder), "port": str(server.port), "key": key, "blob": key.split()[1],
            "salt": _hashed(server.port, 20), "short_salt": _hashed(server.port, 19),
            "rsa": public(self.folder / "host_rsa"), "other": public(self.folder / "other"),
        }  # fmt: skip


def _hashed(port: int, size: int) -> str:
    """Return the server's name as HashKnownHosts writes it, with a salt of `size` bytes."""
    salt = bytes(size)
    digest = hmac.digest(salt, f"[127.0.0.1]:{port}".encode(), "sha1")
    return "|1|" + "|".join(base64.b64encode(part).decode() for part in (salt, digest))


def _private_keys(folder: Path) -> list[Path]:
    """Keys in every form that OpenSSH reads; returns those that the server is to accept."""
    made = [new_key(folder / kind, kind=kind) for kind in ("rsa", "ecdsa")]
    for source, name, style, words in (
        ("rsa", "rsa.p8", "PKCS8", ""),
        ("rsa", "rsa.locked.p8", "PKCS8", "open sesame"),
        ("ecdsa", "ecdsa.p8", "PKCS8", ""),
        ("ecdsa", "ecdsa.pem", "PEM", ""),
    ):
        copy = folder / name
        copy.write_bytes((folder / source).read_bytes())
        copy.chmod(0o600)
        change = ["ssh-keygen", "-q", "-p", "-P", "", "-N", words, "-m", style, "-f", str(copy)]
        subprocess.run(change, check=True, capture_output=True)
    readable = new_key(folder / "open")
    readable.chmod(0o644)
    return [*made, readable]


def _named_by_tokens(laptop: Laptop, key: Path) -> None:
    """Links to `key` under names that only the tokens of ssh_config give."""
    server, me = laptop.server, getpass.getuser()
    ask = ["ssh", "-F", str(server.config), "-o", "ControlPath=/%C/%i/%L", "-G", "site"]
    table = subprocess.run(ask, check=True, capture_output=True, text=True).stdout
    path = next(line for line in table.splitlines() if line.startswith("controlpath "))
    digest, number, short = path.split(" /")[1].split("/")
    tokens = f"tokens-127.0.0.1-{server.port}-site-{me}-{number}-{me}-site-%-{short}"
    for name in (tokens, digest):
        (laptop.folder / name).write_bytes(key.read_bytes())
        (laptop.folder / name).chmod(0o600)


def write(laptop: Laptop, case: Case) -> None:
    """Put the case's configuration in place; each client begins with the same known_hosts."""
    server = laptop.server
    server.configure(*case.lines.format_map(laptop.names).splitlines())
    if case.own_identity:
        text = server.config.read_text().replace(f"IdentityFile {server.identity}\n", "")
        server.config.write_text(text)
    server.known_hosts.write_text(case.known.format_map(laptop.names))


@contextmanager
def prepared_laptop(folder: Path) -> Iterator[Laptop]:
    """Run a server, and prepare every key and list that the cases name."""
    folder.mkdir()
    rsa, authority = new_key(folder / "host_rsa", kind="rsa"), new_key(folder / "authority")
    limits = (
        "KexAlgorithms curve25519-sha256@libssh.org,diffie-hellman-group14-sha256",
        "Ciphers aes256-ctr,aes256-gcm@openssh.com,chacha20-poly1305@openssh.com",
        "MACs hmac-sha2-512,hmac-sha2-256",
    )
    more = (f"HostKey {rsa}", f"TrustedUserCAKeys {authority}.pub", *limits)
    with running_sshd(folder.parent / "server", *more) as server, agent(folder) as place:
        laptop = Laptop(server, folder)
        other, signed = new_key(folder / "other"), new_key(folder / "signed")
        certify(authority, signed).rename(folder / "signed-by-site.pub")
        held = new_key(folder / "held")
        add_to_agent(place, held)
        keys = _private_keys(folder)
        (folder / "revoked.list").write_text(public(server.host_key) + "\n")
        (folder / "others.list").write_text(public(other) + "\n")
        _named_by_tokens(laptop, folder / "rsa")
        server.allow(server.identity, held, *keys)
        limited = f'from="127.0.0.5" {public(new_key(folder / "from"))}\n'
        with (server.folder / "authorized").open("a") as file:
            file.write(limited)
        line = KNOWN.format_map(laptop.names)
        (folder / "global").write_text(line)
        (folder / "known-site").write_text(line)
        wrong = f"[127.0.0.1]:{server.port} {laptop.names['other']}\n"
        (folder / "global-other").write_text(wrong)
        (folder / "dial.py").write_text(DIAL)
        yield laptop
