"""Startup files and login shells as people have them, through a real sshd and the real shells."""

import contextlib
import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import AnswerUnusable, LinkError, LinkLost
from lumitui.remote.ssh.connection import Ssh
from tests.support.jobs.small_jobs import finish, hello_job, hello_project
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster
from tests.support.servers.sshd import Sshd, logs_in, running_sshd, wait_for


@pytest.fixture
def ssh(server: Sshd) -> Iterator[Ssh]:
    connection = server.connect()
    yield connection
    connection.close()
    (server.folder / ".bashrc").unlink(missing_ok=True)


NOISE = {
    "100 KB": "head -c 100000 /dev/zero | tr '\\0' x",
    "words and errors": "echo Welcome; printf 'no line end'; echo quota >&2; "
    "head -c 100000 /dev/zero | tr '\\0' e >&2",
    "terminal": "stty erase ^H; tput init; mesg n; tset -",
    "bytes": r"printf '\033]0;title\007\377\000\r\n\r'",
    "a mark": "echo ':lumitui-0123456789abcdef: 0'",
    "options": "set -u -o noclobber; trap 'echo bye' EXIT; alias sh=false; IFS=:",
    "a job": "(sleep 40; echo late) &",
}


@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE.keys())
def test_noise_of_a_login_file_stays_out_of_every_answer(
    server: Sshd, ssh: Ssh, noise: str
) -> None:
    (server.folder / ".bashrc").write_text(f"{noise}\n")
    for number in range(12):  # more than sshd's sessions, if any were held
        result = ssh.run("printf 'out %s' \"$1\"; cat; echo err >&2; exit 3", stdin=b"in")
        assert (result.code, result.out, result.err) == (3, b"out in", b"err\n"), number
    assert b"".join(ssh.stream("echo more", stop=lambda: False)) == b"more\n"
    block = os.urandom(300_000)
    assert ssh.run("cat", stdin=block).out == block
    assert ssh.connections == 1


def test_a_long_banner_is_passed_over(tmp_path: Path) -> None:
    banner = tmp_path / "banner"
    banner.write_text("Authorised use only.\n" * 5000)
    with running_sshd(tmp_path / "s", f"Banner {banner}") as server:
        logs_in(server.connect())


ENDLESS = [
    pytest.param("head -c 1073741824 /dev/zero", id="a gigabyte", marks=pytest.mark.slow),
    pytest.param("yes >&2", id="errors", marks=pytest.mark.slow),
    pytest.param("tr '\\0' x </dev/zero", id="one line"),
    pytest.param("trap 'yes' EXIT; yes >&2 & true", id="afterwards"),
]


@pytest.mark.parametrize("noise", ENDLESS)
def test_a_login_file_that_prints_without_end_is_named(server: Sshd, ssh: Ssh, noise: str) -> None:
    (server.folder / ".bashrc").write_text(f"{noise}\n")
    with pytest.raises(
        AnswerUnusable,
        match=r"shell startup files at the site print more than 8 MiB|of error messages",
    ):
        ssh.run("sleep 20", timeout=120)
    with pytest.raises(AnswerUnusable, match=r"shell startup files|of error messages"):
        list(ssh.stream("sleep 20", stop=lambda: False))
    assert ssh.bytes_down < 80 << 20, "what is on its way when it is given up, and no more"
    (server.folder / ".bashrc").unlink()
    assert ssh.run("echo on").text == "on\n"


@pytest.mark.parametrize("code", [0, 3])
def test_a_login_file_that_ends_the_shell_is_said_with_its_last_words(
    server: Sshd, ssh: Ssh, code: int
) -> None:
    (server.folder / ".bashrc").write_text(f"echo; echo Maintenance until noon >&2; exit {code}\n")
    with pytest.raises(LinkError, match="ran no command; its last line: Maintenance") as raised:
        ssh.run("true")
    assert "shell startup files" in raised.value.hint and not isinstance(raised.value, LinkLost)
    with pytest.raises(LinkError, match="Maintenance until noon"):
        list(ssh.stream("true", stop=lambda: False))


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ("Accept the terms of use [y/n]?", "; its last line: Accept the terms of use [y/n]?"),
        ("Closed until noon.", "; its last line: Closed until noon."),
        ("", " and printed nothing."),
    ],
)
def test_the_last_words_of_a_login_file_end_the_sentence_once(
    server: Sshd, ssh: Ssh, printed: str, said: str
) -> None:
    (server.folder / ".bashrc").write_text(f"echo '{printed}'; exit 0\n")
    with pytest.raises(LinkError) as raised:
        ssh.run("true")
    assert raised.value.message.endswith(f" ran no command{said}")


def test_a_login_file_that_hangs_is_waited_for_as_long_as_the_request(
    server: Sshd, ssh: Ssh
) -> None:
    (server.folder / ".bashrc").write_text("sleep 30\n")
    with pytest.raises(LinkLost, match="did not answer within 1 s"):
        ssh.run("true", timeout=1)
    (server.folder / ".bashrc").unlink()
    assert ssh.run("echo on").text == "on\n"
    assert ssh.connections == 1


TAKING = {
    **{f"exec {shell}": f"exec {shell}" for shell in ("sh", "bash", "tcsh", "zsh", "fish", "ksh")},
    "read": "read -r answer",
    "two reads": "read -r answer; read -r answer",
    "cat": "cat >/dev/null",
    "head": "head -c 20 >/dev/null",
    "python": "exec python3",
}


@pytest.mark.parametrize("taking", TAKING.values(), ids=TAKING.keys())
def test_a_login_file_that_takes_the_script_runs_nothing_of_it(
    server: Sshd, ssh: Ssh, taking: str, tmp_path: Path
) -> None:
    """Half a script, or one that another shell reads, could do anything."""
    if shutil.which(taking.rpartition("exec ")[2].split()[0]) is None and "exec" in taking:
        pytest.skip(f"{taking}: not installed")
    (server.folder / ".bashrc").write_text(f"{taking}\n")
    lines = "\n".join(f"touch {tmp_path}/ran-{number}" for number in range(20))
    with pytest.raises(LinkError, match="ran no command") as raised:
        ssh.run(lines, timeout=20)
    assert not isinstance(raised.value, LinkLost)
    assert not list(tmp_path.iterdir())


@pytest.fixture(
    scope="module",
    params=["tcsh", *(pytest.param(name, marks=pytest.mark.slow) for name in ("csh", "bash"))],
)
def person(request: pytest.FixtureRequest) -> Iterator[tuple[str, Path]]:
    """A real account with that login shell, for as long as the tests run: its name and home."""
    shell = shutil.which(request.param)
    if shell is None or os.geteuid() != 0:
        pytest.skip(f"needs root and {request.param}")
    name = f"lt{uuid.uuid4().hex[:8]}"
    home = Path(tempfile.mkdtemp(prefix="person-"))
    # A locked account ("!") may not log in, even by key.
    command = ["useradd", "-M", "-d", str(home), "-s", str(shell), "-p", "*", name]
    subprocess.run(command, check=True)
    home.chmod(0o755)
    try:
        yield name, home
    finally:
        left = ["pgrep", "-u", name]
        with contextlib.suppress(AssertionError):  # then it is forced
            wait_for(lambda: subprocess.run(left, capture_output=True).returncode == 1, "the end")
        subprocess.run(["userdel", "-f", name], check=True, capture_output=True)
        shutil.rmtree(home)


def test_csh_is_a_login_shell_like_any_other(person: tuple[str, Path]) -> None:
    name, home = person
    (home / ".ssh").mkdir()
    (home / ".ssh" / "rc").write_text("echo words of rc; echo and errors >&2\n")
    for file in (".cshrc", ".tcshrc", ".login", ".bashrc", ".profile"):
        (home / file).write_text("echo Welcome to $USER\nstty erase ^H\n")
    with running_sshd(home / "sshd", "SetEnv NOTHING=here") as server:
        server.configure(f"User {name}")
        (server.folder / "authorized").chmod(0o644)
        connection = server.connect()
        script = 'echo "it\'s ! $((1 + 1)) `id -un`" "$HOME"; cat; echo err >&2; exit 5'
        result = connection.run(script, stdin=b"rest\0\xff")
        assert result.out == f"it's ! 2 {name} {home}\n".encode() + b"rest\0\xff"
        assert (result.code, result.err) == (5, b"err\n")
        stream = connection.stream("echo $$; tail -f /dev/null", stop=lambda: False)
        assert next(chunk for chunk in stream if chunk).strip().isdigit()
        stream.close()  # type: ignore[attr-defined]  # a generator
        block = os.urandom(300_000)
        assert connection.run("cat", stdin=block).out == block
        connection.close()


def test_a_job_is_sent_and_watched_through_csh(
    cluster: Cluster, home: Home, tmp_path: Path
) -> None:
    """The mini cluster's user, whose commands all go through a csh that prints."""
    folder = Path(tempfile.mkdtemp(prefix="csh-"))
    folder.chmod(0o755)
    wrapper = folder / "csh.sh"
    wrapper.write_text('#!/bin/sh\nexec tcsh -c "echo noise; $SSH_ORIGINAL_COMMAND"\n')
    wrapper.chmod(0o755)
    config = (cluster.root / "ssh" / "sshd_config").read_text()
    environment = next(line for line in config.splitlines() if line.startswith("SetEnv "))
    try:
        with running_sshd(folder / "s", environment, f"ForceCommand {wrapper}") as server:
            server.folder.chmod(0o755)
            (server.folder / "authorized").chmod(0o644)
            server.trust()
            own = folder / "own"
            text = server.config.read_text()
            own.write_text(f"Host minilumi\n  User {cluster.user}\n{text}")
            home.add_cluster(cluster)
            profile = home.config / "sites" / "minilumi.yaml"
            profile.write_text(profile.read_text().replace(str(cluster.ssh_config), str(own)))
            runs = Runs(home.settings)
            spec = hello_job(gpus_per_node=1, launcher="plain", strategy="single")
            run = runs.send(runs.preview(spec, hello_project(tmp_path / "project")))
            done = finish(runs, run)
            assert done.state is State.DONE and b'"rank": 0' in runs.read_log(run.id)[1]
            runs.close()
            assert server.logged("forced-command (config)") > 3
            assert server.logged("Accepted publickey") == 1
    finally:
        shutil.rmtree(folder)
