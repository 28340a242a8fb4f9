"""A link that fails, on the command line: an error, a hint, exit code 3, no traceback.

The words of each failure are tested in tests/remote/ssh.
"""

import os
import pty
import select
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.places import SITES
from tests.support.program.command_line import PROGRAM, Here, environ, told
from tests.support.program.home import Home
from tests.support.servers.asking_sshd import CODE, asking_sshd
from tests.support.servers.sshd import Sshd, free_port


@pytest.fixture
def site(home: Home, server: Sshd) -> Sshd:
    """The site `minilumi` is the module's server, whose key is known."""
    be_site(home, server)
    return server


def be_site(home: Home, server: Sshd) -> None:
    server.trust()
    profile = (SITES / "minilumi.yaml").read_text()
    text = profile.replace("/tmp/minilumi/ssh/config", str(server.config))
    (home.config / "sites" / "minilumi.yaml").write_text(text)


def configure(server: Sshd, *lines: str) -> None:
    """As Sshd.configure, for every name."""
    server.configure()
    text = server.config.read_text().split("\n", 1)[1]
    server.config.write_text("\n".join([*lines, text]))


def unknown(server: Sshd, folder: Path) -> None:
    server.known_hosts.unlink()


def nobody(server: Sshd, folder: Path) -> None:
    configure(server, f"Port {free_port()}")


def circle(server: Sshd, folder: Path) -> None:
    configure(server, "ProxyJump minilumi")


def dead_proxy(server: Sshd, folder: Path) -> None:
    configure(server, "ProxyCommand echo the VPN is down >&2")


def bad_option(server: Sshd, folder: Path) -> None:
    configure(server, "NoSuchOption yes")


def end_of_shell(server: Sshd, folder: Path) -> None:
    (server.folder / ".bashrc").write_text("echo closed for repair; exit 3\n")


FAILURES: dict[Callable[[Sshd, Path], None], str] = {
    unknown: "Nobody accepted",
    nobody: "Connection refused",
    circle: "forms a loop",
    dead_proxy: "the VPN is down",
    bad_option: "OpenSSH cannot use the configuration",
    end_of_shell: "closed for repair",
}


@pytest.fixture(autouse=True)
def tidy(shared: Sshd) -> Iterator[None]:
    yield
    (shared.folder / ".bashrc").unlink(missing_ok=True)


@pytest.mark.parametrize(("fail", "said"), FAILURES.items(), ids=[f.__name__ for f in FAILURES])
def test_a_link_that_fails_is_two_sentences_and_exit_code_3(
    site: Sshd, here: Here, tmp_path: Path, fail: Callable[[Sshd, Path], None], said: str
) -> None:
    fail(site, tmp_path)
    told(here("site", "check", "minilumi"), 3, said)


def test_a_site_that_works_is_the_measure(site: Sshd, here: Here) -> None:
    """Without a failure the same verb comes further: to the site's commands, which are missing."""
    done = here("site", "check", "minilumi")
    assert done.returncode == 1 and "connection" in done.stdout, done.stderr


@pytest.mark.usefixtures("cluster")  # a PAM module is compiled: root, gcc
def test_ctrl_c_at_a_question_gives_the_terminal_back(home: Home, tmp_path: Path) -> None:
    """The question is put in a thread of the connection, which Ctrl-C leaves in the middle."""
    with asking_sshd(tmp_path, CODE) as asking:
        be_site(home, asking.sshd)
        process, screen = pty.fork()
        if process == 0:
            program = " ".join([*PROGRAM, "site", "check", "minilumi"])
            script = f"trap : INT; {program}; echo rc=$?; stty -a | grep -o ' -*echo '; echo over"
            os.execve("/bin/sh", ["sh", "-c", script], environ(home))
        shown, deadline, next_press = b"", time.monotonic() + 90, 0.0
        while b"over" not in shown and time.monotonic() < deadline:
            if select.select([screen], [], [], 0.5)[0]:
                shown += os.read(screen, 65536)
            # The prompt is written before the echo is off; the mode tells when it is.
            hidden = not termios.tcgetattr(screen)[3] & termios.ECHO
            if b"Verification code:" in shown and hidden and time.monotonic() > next_press:
                # One of some 200 was not heeded; a person presses again, too.
                os.write(screen, b"\x03")
                next_press = time.monotonic() + 8
        os.close(screen)
        os.waitpid(process, 0)
        text = shown.decode()
        assert "rc=130" in text and "Interrupted" in text, text
        assert " echo " in text.partition("rc=130")[2] and " -echo " not in text, text
        assert asking.answers == []
