"""A real sshd that asks through PAM: codes that are good once, passwords, both after a key.

sshd's PAM service is named as its program, so each server runs through a link of its own name and
has a file in /etc/pam.d for as long as it lives. What asks is tests/cluster/pam_words.c.
"""

import contextlib
import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.places import CLUSTER
from tests.support.servers.sshd import SSHD, Sshd, running_sshd

SOURCE = CLUSTER / "pam_words.c"
ASK = ("UsePAM yes", "KbdInteractiveAuthentication yes", "PasswordAuthentication no")
CODE = "[prompt=Verification code: ]"


class Asking:
    """A server with PAM: what it asked, how the answers were judged, who came in."""

    def __init__(self, server: Sshd) -> None:
        self.sshd, self.folder = server, server.folder

    def codes(self, *codes: str) -> None:
        """The codes that are good from now on, each once."""
        (self.folder / "codes").write_text("".join(f"{code}\n" for code in codes))

    @property
    def answers(self) -> list[str]:
        """What PAM received so far: the prompt, and `right` or `wrong`."""
        with contextlib.suppress(FileNotFoundError):
            return (self.folder / "answers").read_text().splitlines()
        return []


def build(folder: Path) -> Path:
    """Compile the PAM module, or skip the test where that cannot be."""
    missing = [name for name in ("gcc", "sshd") if shutil.which(name) is None]
    if missing or os.geteuid() != 0 or not Path("/etc/pam.d").is_dir():
        pytest.skip(f"needs root, /etc/pam.d and a compiler (missing: {missing or 'root'})")
    module = folder / "pam_words.so"
    command = ["gcc", "-shared", "-fPIC", "-O1", "-o", str(module), str(SOURCE)]
    subprocess.run(command, check=True)
    return module


@contextlib.contextmanager
def asking_sshd(
    folder: Path, *stack: str, options: tuple[str, ...] = (), methods: str = "keyboard-interactive"
) -> Iterator[Asking]:
    """Run a server whose PAM asks line by line of `stack` (arguments of pam_words.c)."""
    folder.mkdir(parents=True, exist_ok=True)
    module, service = build(folder), f"lumitui-test-{uuid.uuid4().hex[:8]}"
    program, stack_file = folder / service, Path("/etc/pam.d") / service
    program.symlink_to(SSHD)
    lines = [f"auth requisite {module} folder={folder} {words}" for words in stack]
    lines += [f"{what} required pam_permit.so" for what in ("auth", "account", "session")]
    try:
        stack_file.write_text("\n".join(lines) + "\n")
        wanted = (*options, *ASK, f"AuthenticationMethods {methods}")
        with running_sshd(folder, *wanted, program=str(program)) as server:
            yield Asking(server)
    finally:
        stack_file.unlink(missing_ok=True)
