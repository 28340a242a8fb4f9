"""Logins that need a person, against a real sshd with PAM (tests/cluster/pam_words.c).

Two questions in one round are paramiko's own server's part (test_dialog.py): sshd passes PAM's
questions on one by one.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lumitui.remote.site.errors import AnswerNeeded, LinkError
from lumitui.remote.ssh.connection import Ssh
from lumitui.remote.ssh.link import Link
from lumitui.remote.ssh.prompts import LoginQuestion, attendance
from tests.support.servers.asking_sshd import CODE, Asking, asking_sshd
from tests.support.servers.sshd import Answers, wait_for

# Needs root and a compiler, which the mini cluster installs.
pytestmark = pytest.mark.usefixtures("cluster")
Connect = Callable[[Asking, Callable[[LoginQuestion], str | None]], Ssh]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
    folder = tmp_path_factory.mktemp("codes")
    with asking_sshd(folder, CODE, methods="publickey,keyboard-interactive") as server:
        yield server


@pytest.fixture
def site(shared: Asking) -> Asking:
    """A key and then a code, with nothing left of other tests."""
    shared.sshd.configure()
    shared.codes("111111", "222222")
    (shared.folder / "answers").unlink(missing_ok=True)
    return shared


@pytest.fixture
def connect() -> Iterator[Connect]:
    made: list[Ssh] = []

    def now(server: Asking, ask: Callable[[LoginQuestion], str | None]) -> Ssh:
        server.sshd.trust()
        made.append(Ssh(server.sshd.login(), ask))
        return made[-1]

    yield now
    for connection in made:
        connection.close()


RIGHT, WRONG = "Verification code: right", "Verification code: wrong"


def lose(server: Asking, connection: Ssh) -> None:
    """End the connection at the server, and wait until that is known here."""
    server.sshd.drop()
    wait_for(lambda: connection._link is None or not connection._link.alive(), "the end")


# -- what is asked


@pytest.mark.parametrize("echo", ["", "echo"])
def test_a_code_is_asked_for_with_the_server_s_words(
    tmp_path: Path, connect: Connect, echo: str
) -> None:
    words = f"{CODE} [info=Use the token of your phone.] {echo}"
    with asking_sshd(tmp_path, words) as server:
        server.codes("135790")
        answers = Answers("135790")
        assert connect(server, answers).run("echo in; cat", stdin=b"data").text == "in\ndata"
        (question,) = answers.questions
        assert (question.kind, question.secret) == ("otp", not echo)
        for part in ("@127.0.0.1", "Use the token of your phone.", "Verification code:"):
            assert part in question.text
        assert server.answers == [RIGHT]
        assert server.sshd.logged("Accepted keyboard-interactive/pam") == 1


@pytest.mark.parametrize(
    "methods", ["publickey,keyboard-interactive", "keyboard-interactive,publickey"]
)
def test_a_key_and_a_code_in_either_order(tmp_path: Path, connect: Connect, methods: str) -> None:
    with asking_sshd(tmp_path, CODE, methods=methods) as server:
        server.codes("135790")
        assert connect(server, Answers("135790")).run("echo in").text == "in\n"
        assert server.sshd.logged("Partial ") == 1 and server.answers == [RIGHT]
        assert server.sshd.logged("Failed ") == 0


def test_a_password_and_a_code(tmp_path: Path, connect: Connect) -> None:
    with asking_sshd(tmp_path, "[prompt=Password: ] fixed=hunter2", CODE) as server:
        server.codes("111111", "222222")
        answers = Answers("hunter2", "111111", "222222")
        connection = connect(server, answers)
        assert connection.run("echo in").text == "in\n"
        assert [question.kind for question in answers.questions] == ["password", "otp"]
        lose(server, connection)
        with attendance(False), pytest.raises(AnswerNeeded, match="code"):
            connection.run("true")
        assert connection.connections == 1
        assert connection.run("echo again").text == "again\n"
        assert [question.kind for question in answers.questions] == ["password", "otp", "otp"]
        assert server.answers == ["Password: right", RIGHT] * 2


# -- wrong, declined, late


def test_a_wrong_code_may_be_corrected_once(site: Asking, connect: Connect) -> None:
    answers = Answers("000000", "111111")
    connection = connect(site, answers)
    assert connection.run("echo in").text == "in\n"
    assert site.answers == [WRONG, RIGHT] and connection.connections == 1
    assert "this is your last attempt" in answers.questions[1].text


def test_a_wrong_code_twice_ends_the_login(site: Asking, connect: Connect) -> None:
    answers = Answers("000000", "000001", "111111")
    connection = connect(site, answers)
    with pytest.raises(LinkError, match="answers were not accepted") as raised:
        connection.run("true")
    assert "lock an account" in raised.value.hint and raised.value.exit_code == 3
    assert site.answers == [WRONG] * 2 and connection.connections == 1
    for _ in range(3):
        with attendance(False), pytest.raises(AnswerNeeded):
            connection.run("true")
    assert connection.connections == 1 and site.answers == [WRONG] * 2


def test_a_question_put_three_times_in_one_dialog_is_answered_twice(
    tmp_path: Path, connect: Connect
) -> None:
    with asking_sshd(tmp_path, f"{CODE} again") as server:
        server.codes("135790")
        answers = Answers("000000", "000001", "135790")
        with pytest.raises(LinkError, match="answers were not accepted"):
            connect(server, answers).run("true")
        wait_for(lambda: len(server.sshd.sessions()) == 0, "the server to let go")
        assert server.answers == [WRONG] * 2 and len(answers.questions) == 2


def test_declining_sends_no_answer(site: Asking, connect: Connect) -> None:
    failed = site.sshd.logged("Failed ")
    answers = Answers()
    connection = connect(site, answers)
    with pytest.raises(LinkError, match="did not answer a question"):
        connection.run("true")
    wait_for(lambda: not site.sshd.sessions(), "the server to let go")
    assert (len(answers.questions), site.answers) == (1, [])
    assert site.sshd.logged("Failed ") == failed
    with attendance(False), pytest.raises(AnswerNeeded, match="Needs your code"):
        connection.run("true")
    assert connection.connections == 1


def test_an_answer_that_comes_too_late(tmp_path: Path, connect: Connect) -> None:
    with asking_sshd(tmp_path, CODE, options=("LoginGraceTime 1",)) as server:
        server.codes("135790")

        def slowly(question: LoginQuestion) -> str:
            wait_for(lambda: not server.sshd.sessions(), "the server to hang up")
            return "135790"

        with pytest.raises(LinkError, match="was not completed") as raised:
            connect(server, slowly).run("true")
        assert "only a minute or two" in raised.value.hint


# -- one code a day


def test_a_lost_link_asks_nobody_until_a_person_wants_it(site: Asking, connect: Connect) -> None:
    answers = Answers("111111", "222222")
    connection = connect(site, answers)
    connection.run("true")
    lose(site, connection)
    before = site.sshd.logged("Connection from")
    for _ in range(5):
        with attendance(False), pytest.raises(AnswerNeeded, match="Needs your code") as raised:
            connection.run("true")
        with attendance(False), pytest.raises(AnswerNeeded):
            next(connection.stream("true", stop=lambda: False))
    assert "Press r" in raised.value.hint and raised.value.exit_code == 3
    assert (len(answers.questions), connection.connections) == (1, 1)
    assert site.sshd.logged("Connection from") == before, "nothing is sent meanwhile"
    assert connection.run("echo again").text == "again\n"
    with attendance(False):
        assert connection.run("echo and again").text == "and again\n"
    assert site.answers == [RIGHT] * 2 and len(answers.questions) == 2


def test_a_first_refresh_without_a_person_does_not_begin_to_ask(
    site: Asking, connect: Connect
) -> None:
    answers = Answers("111111")
    connection = connect(site, answers)
    began = site.sshd.logged("Postponed keyboard-interactive")
    with attendance(False), pytest.raises(AnswerNeeded):
        connection.run("true")
    with attendance(False), pytest.raises(AnswerNeeded):
        connection.run("true")
    assert not answers.questions and connection.connections == 1
    assert site.sshd.logged("Postponed keyboard-interactive") == began
    assert connection.run("echo in").text == "in\n"


def test_ten_threads_of_which_one_has_a_person_ask_once(site: Asking, connect: Connect) -> None:
    thinking, questions = threading.Event(), list[LoginQuestion]()

    def ask(question: LoginQuestion) -> str:
        questions.append(question)
        assert thinking.wait(10)
        return "111111"

    connection = connect(site, ask)

    def refresh(number: int) -> str:
        with attendance(number == 4):
            return connection.run(f"echo {number}").text

    with ThreadPoolExecutor(10) as threads:
        person = threads.submit(refresh, 4)
        wait_for(lambda: bool(questions), "the question")
        others = [threads.submit(refresh, number) for number in range(5, 14)]
        thinking.set()
        assert person.result(10) == "4\n"
        assert [other.result(10) for other in others] == [f"{n}\n" for n in range(5, 14)]
    assert len(questions) == 1 and site.answers == [RIGHT] and connection.connections == 1


def test_a_person_does_not_get_the_refusal_of_a_timed_refresh(
    site: Asking, connect: Connect
) -> None:
    """A refresh without a person is connecting when one comes: they are asked nevertheless."""
    answers = Answers("111111")
    connection = connect(site, answers)
    outcomes: list[str] = []

    def by_clock() -> None:
        with attendance(False):
            try:
                connection.run("true")
            except AnswerNeeded:
                outcomes.append("needed")

    with connection._connecting:  # both wait for the same moment
        clock = threading.Thread(target=by_clock)
        clock.start()
        time.sleep(0.1)
        person = ThreadPoolExecutor(1).submit(lambda: connection.run("echo in").text)
        time.sleep(0.1)
    assert person.result(10) == "in\n"
    clock.join(10)
    assert not clock.is_alive() and len(answers.questions) == 1


def test_a_stalled_link_that_cost_a_code_is_kept(
    site: Asking, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.sshd.configure("ConnectTimeout 1")
    answers = Answers("111111", "222222")
    connection = connect(site, answers)
    session = int(connection.run("echo $PPID").text)
    link, asked = connection._link, list[float]()
    assert isinstance(link, Link)
    answers_of = link._answers

    def count(seconds: float) -> bool:
        asked.append(seconds)
        return answers_of(seconds)

    monkeypatch.setattr(link, "_answers", count)
    os.kill(session, signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(6) as threads:
            waiting = [threads.submit(connection.run, "true") for _ in range(6)]
            errors = [item.exception(60) for item in waiting]
        assert all("does not answer at the moment" in str(error) for error in errors), errors
        assert len(asked) <= 2, "six do not wait one after the other"
    finally:
        os.kill(session, signal.SIGCONT)
    assert connection.run("echo $PPID").text == f"{session}\n"
    assert len(answers.questions) == 1 and connection.connections == 1


def test_a_password_is_typed_once_a_day(tmp_path: Path, connect: Connect) -> None:
    with asking_sshd(tmp_path, "[prompt=Password: ] fixed=hunter2") as server:
        answers = Answers("hunter2")
        connection = connect(server, answers)
        connection.run("true")
        for _ in range(2):
            lose(server, connection)
            with attendance(False):
                assert connection.run("echo back").text == "back\n"
        assert len(answers.questions) == 1 and server.answers == ["Password: right"] * 3


def test_a_kept_password_that_is_refused_is_forgotten_for_good(
    tmp_path: Path, connect: Connect
) -> None:
    """A site may call a one-time code a password: one wrong answer shows it, and no second."""
    with asking_sshd(tmp_path, "[prompt=Password: ]") as server:
        server.codes("111111", "222222", "333333")
        answers = Answers("111111", "222222", "333333")
        connection = connect(server, answers)
        connection.run("true")
        lose(server, connection)
        for _ in range(3):
            with attendance(False), pytest.raises(AnswerNeeded):
                connection.run("true")
        assert server.answers == ["Password: right", "Password: wrong"]
        for word in ("222222", "333333"):
            assert connection.run("echo in").text == "in\n", word
            lose(server, connection)
            with attendance(False), pytest.raises(AnswerNeeded):
                connection.run("true")
        assert server.answers.count("Password: wrong") == 1
