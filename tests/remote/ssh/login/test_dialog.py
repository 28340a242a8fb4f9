"""Logins that need a person: passwords and one-time codes, against a server that asks for them.

This is paramiko's own server, which can do what sshd with PAM (test_onetime_codes.py) cannot: put
two questions in one round, and take passwords without an account.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lumitui.remote.site.errors import LinkError
from lumitui.remote.ssh.connection import Ssh
from lumitui.remote.ssh.prompts import LoginQuestion
from tests.support.servers.clients.asking_server import CODE, PASSWORD, Server
from tests.support.servers.sshd import Answers


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.close()


@pytest.fixture
def connect(asking: Server) -> Iterator[Callable[..., Ssh]]:
    made: list[Ssh] = []

    def now(ask: Callable[[LoginQuestion], str | None]) -> Ssh:
        made.append(Ssh(asking.login, ask))
        return made[-1]

    yield now
    for connection in made:
        connection.close()


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
    assert "Two factors" in answers.questions[0].text
    assert asking.attempts == ["keyboard-interactive right"]


@pytest.mark.parametrize("method", ["keyboard-interactive", "password"])
def test_an_answer_that_is_not_given(
    asking: Server, connect: Callable[..., Ssh], method: str
) -> None:
    asking.methods = [method]
    answers = Answers()
    with pytest.raises(LinkError, match="did not answer a question"):
        connect(answers).run("true")
    assert len(answers.questions) == 1


def test_what_goes_wrong_while_asking_reaches_the_caller(
    asking: Server, connect: Callable[..., Ssh]
) -> None:
    def ask(_: LoginQuestion) -> str | None:
        raise RuntimeError("the screen is gone")

    with pytest.raises(RuntimeError, match="the screen is gone"):
        connect(ask).run("true")
