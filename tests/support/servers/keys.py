"""What is done with keys: an authority signs them, an agent holds them."""

import getpass
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.servers.sshd import wait_for


def field(content: bytes) -> bytes:
    """Return bytes as a key or a certificate has them: after their number."""
    return len(content).to_bytes(4, "big") + content


def certify(authority: Path, key: Path, *more: str, name: str = "") -> Path:
    """Sign the public key `key`; the certificate lies beside it, as the site would give it."""
    who = name or getpass.getuser()
    command = ["ssh-keygen", "-q", "-s", str(authority), "-I", "someone", "-n", who, *more]
    subprocess.run([*command, f"{key}.pub"], check=True)
    return Path(f"{key}-cert.pub")


@contextmanager
def agent(folder: Path) -> Iterator[Path]:
    """Run an agent without keys; yields its socket."""
    place = folder / "agent"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", place], stdout=subprocess.DEVNULL)
    try:
        wait_for(place.exists, "the agent")
        yield place
    finally:
        process.terminate()
        process.wait(10)


def add(place: Path, key: Path) -> None:
    """Give a key, and a certificate beside it, to the agent."""
    environment = {**os.environ, "SSH_AUTH_SOCK": str(place)}
    subprocess.run(["ssh-add", "-q", str(key)], env=environment, check=True)
