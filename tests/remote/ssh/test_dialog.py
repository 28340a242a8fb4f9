"""Logins that need a person: passwords and one-time codes, against a server that asks for them.

This is paramiko's own server, which can do what sshd with PAM (test_onetime_codes.py) cannot: put
two questions in one round, and take passwords without an account.
"""

import contextlib
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import paramiko
import pytest

from lumitui.remote.errors import LinkError
from lumitui.remote.ssh.config import Login
from lumitui.remote.ssh.connection import Ssh
from lumitui.remote.ssh.prompts import Question
from tests.support.servers.sshd import Answers, fingerprint, new_key, public

CODE = "246810"
PASSWORD = "correct horse"


class Asking(paramiko.ServerInterface):
    """Wants `methods` one after the other."""

    def __init__(self, server: "Server") -> None:
        self.key, self.attempts = public(server.identity), server.attempts
        self.left, self.prompts, self.right = list(server.methods), server.prompts, server.right
        self.again = False

    def get_allowed_auths(self, username: str) -> str:
        return "keyboard-interactive,password" if self.left[0] == "either" else self.left[0]

    def _judge(self, method: str, right: bool) -> int:
        self.attempts.append(f"{method} {'right' if right else 'wrong'}")
        if not right or self.left[0] != method:
            return paramiko.AUTH_FAILED  # type: ignore[attr-defined, no-any-return]
        self.left.pop(0)
        done = paramiko.AUTH_PARTIALLY_SUCCESSFUL if self.left else paramiko.AUTH_SUCCESSFUL  # type: ignore[attr-defined]
        return int(done)

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        return self._judge("publickey", f"{key.get_name()} {key.get_base64()}" == self.key)

    def check_auth_password(self, username: str, password: str) -> int:
        return self._judge("password", password == PASSWORD)

    def check_auth_interactive(self, username: str, submethods: str) -> paramiko.InteractiveQuery:  # type: ignore[name-defined]
        return paramiko.server.InteractiveQuery("Two factors", "From your phone", *self.prompts)

    def check_auth_interactive_response(
        self, responses: list[str]
    ) -> int | paramiko.InteractiveQuery:  # type: ignore[name-defined]
        if responses != self.right and "patient" in self.left and not self.again:
            self.again = True  # as PAM does: the same question in the same attempt
            return self.check_auth_interactive("", "")
        return self._judge("keyboard-interactive", responses == self.right)

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return 0  # opened

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        def execute() -> None:
            data = b""
            while chunk := channel.recv(1 << 16):
                data += chunk
            done = subprocess.run(["/bin/sh", "-c", command], input=data, capture_output=True)
            channel.sendall(done.stdout)
            channel.sendall_stderr(done.stderr)
            channel.send_exit_status(done.returncode)
            channel.close()

        threading.Thread(target=execute, daemon=True).start()
        return True


class Server:
    """Listens and lets every connection in that gives `methods`."""

    def __init__(self, folder: Path) -> None:
        self.identity, self.host_key = new_key(folder / "identity"), new_key(folder / "host")
        self.methods, self.attempts = ["keyboard-interactive"], list[str]()
        self.prompts: tuple[tuple[str, bool], ...] = (("Code: ", False),)
        self.right = [CODE]
        self._host = paramiko.Ed25519Key.from_private_key_file(str(self.host_key))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[paramiko.Transport] = []
        port = self._listener.getsockname()[1]
        (folder / "config").write_text(
            f"Host *\nHostName 127.0.0.1\nPort {port}\nUser me\nIdentityFile {self.identity}\n"
            f"IdentityAgent none\nIdentitiesOnly yes\nUserKnownHostsFile {folder}/known\n"
        )
        prints = {"ssh-ed25519": fingerprint(self.host_key)}
        self.login = Login("site", config=folder / "config", fingerprints=prints)
        self._serving = threading.Thread(target=self._serve, daemon=True)
        self._serving.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):  # closed at the end of the test
            while True:
                transport = paramiko.Transport(self._listener.accept()[0])
                self._open.append(transport)
                transport.add_server_key(self._host)
                transport.start_server(event=threading.Event(), server=Asking(self))

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # a blocked accept would keep the port
        self._serving.join(10)
        self._listener.close()
        for transport in self._open:
            transport.close()


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.close()


@pytest.fixture
def connect(asking: Server) -> Iterator[Callable[..., Ssh]]:
    made: list[Ssh] = []

    def now(ask: Callable[[Question], str | None]) -> Ssh:
        made.append(Ssh(asking.login, ask))
        return made[-1]

    yield now
    for connection in made:
        connection.close()


def test_a_code_is_asked_for_with_the_server_s_words(
    asking: Server, connect: Callable[..., Ssh]
) -> None:
    answers = Answers(CODE)
    assert connect(answers).run("echo in; cat", stdin=b"data").text == "in\ndata"
    (question,) = answers.questions
    assert (question.kind, question.secret) == ("otp", True)
    for words in ("me@127.0.0.1", "Two factors", "From your phone", "Code:"):
        assert words in question.text


def test_a_key_and_then_a_code(asking: Server, connect: Callable[..., Ssh]) -> None:
    asking.methods = ["publickey", "keyboard-interactive"]
    answers = Answers(CODE)
    assert connect(answers).run("echo in").text == "in\n"
    assert asking.attempts == ["publickey right", "keyboard-interactive right"]


def test_a_password(asking: Server, connect: Callable[..., Ssh]) -> None:
    asking.methods = ["password"]
    answers = Answers(PASSWORD)
    assert connect(answers).run("echo in").text == "in\n"
    assert [(item.kind, item.secret) for item in answers.questions] == [("password", True)]


def test_a_question_asked_again_in_one_dialog_is_passed_on_once(
    asking: Server, connect: Callable[..., Ssh]
) -> None:
    asking.methods = ["keyboard-interactive", "patient"]
    answers = Answers("wrong", "wrong too", CODE)
    with pytest.raises(LinkError, match="answers were not accepted"):
        connect(answers).run("true")
    assert len(answers.questions) == 2
    assert "this is the last try" in answers.questions[1].text


def test_a_refused_dialog_is_not_followed_by_another_method(
    asking: Server, connect: Callable[..., Ssh]
) -> None:
    asking.methods = ["either"]
    answers = Answers("wrong", "wrong too", PASSWORD)
    with pytest.raises(LinkError, match="answers were not accepted"):
        connect(answers).run("true")
    assert asking.attempts == ["keyboard-interactive wrong"] * 2


@pytest.mark.parametrize("method", ["keyboard-interactive", "password"])
def test_a_wrong_answer_may_be_corrected_once(
    asking: Server, connect: Callable[..., Ssh], method: str
) -> None:
    asking.methods = [method]
    answers = Answers("wrong", "wrong too", CODE, PASSWORD)
    connection = connect(answers)
    with pytest.raises(LinkError, match="answers were not accepted"):
        connection.run("true")
    assert len(answers.questions) == 2 and asking.attempts == [f"{method} wrong"] * 2
    assert connection.connections == 1


def test_two_questions_in_one_round(asking: Server, connect: Callable[..., Ssh]) -> None:
    asking.prompts, asking.right = (("Password: ", False), ("Code: ", True)), [PASSWORD, CODE]
    answers = Answers(PASSWORD, CODE)
    assert connect(answers).run("echo in").text == "in\n"
    assert [(q.kind, q.secret) for q in answers.questions] == [("password", True), ("otp", False)]
    assert asking.attempts == ["keyboard-interactive right"]


@pytest.mark.parametrize("method", ["keyboard-interactive", "password"])
def test_an_answer_that_is_not_given(
    asking: Server, connect: Callable[..., Ssh], method: str
) -> None:
    asking.methods = [method]
    answers = Answers()
    with pytest.raises(LinkError, match="a question was not answered"):
        connect(answers).run("true")
    assert len(answers.questions) == 1


def test_a_new_connection_asks_for_a_new_code(asking: Server, connect: Callable[..., Ssh]) -> None:
    answers = Answers(CODE, CODE)
    connection = connect(answers)
    connection.run("true")
    connection.run("true")
    assert len(answers.questions) == 1
    connection.close()
    connection.run("true")
    assert len(answers.questions) == 2


def test_what_goes_wrong_while_asking_reaches_the_caller(
    asking: Server, connect: Callable[..., Ssh]
) -> None:
    def ask(_: Question) -> str | None:
        raise RuntimeError("the screen is gone")

    with pytest.raises(RuntimeError, match="the screen is gone"):
        connect(ask).run("true")
