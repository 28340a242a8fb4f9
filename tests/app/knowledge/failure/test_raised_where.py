"""What an exception means by where it was raised, and by the system's words in it."""

import pytest

from lumitui.app.knowledge.failure.diagnose import diagnose
from lumitui.app.knowledge.failure.diagnosis import RunEnd
from lumitui.remote.site.states import State

TRACEBACK = """\
Traceback (most recent call last):
  File "/scratch/run/train.py", line 8, in main
    work()
  File "{file}", line 70, in {function}
    raise error
{raised}
"""


def cause_of(file: str, function: str, raised: str) -> str:
    log = TRACEBACK.format(file=file, function=function, raised=raised)
    return diagnose(RunEnd(State.FAILED, rc=1, log=log))[0].id


@pytest.mark.parametrize(
    ("file", "function", "raised", "cause"),
    [
        (
            "/usr/lib/python3.11/subprocess.py",
            "_execute_child",
            "FileNotFoundError: [Errno 2] No such file or directory: 'plot-it'",
            "no-command",
        ),
        (
            "/usr/lib/python3.11/pathlib.py",
            "open",
            "FileNotFoundError: [Errno 2] No such file or directory: 'plot-it'",
            "no-file",
        ),
        (
            "/env/torch/distributed/rendezvous.py",
            "_tcp_rendezvous_handler",
            "socket.gaierror: [Errno -2] Name or service not known",
            "rendezvous",
        ),
        (
            "/env/urllib3/connection.py",
            "_new_conn",
            "socket.gaierror: [Errno -2] Name or service not known",
            "no-internet",
        ),
        ("/env/tool/io.py", "run", "ToolError: open /x/y: permission denied", "permission"),
        ("/env/tool/io.py", "run", "ToolError: mmap: Cannot allocate memory", "host-memory"),
        ("/env/tool/io.py", "run", "ToolError: it is not allowed", "exception"),
    ],
)
def test_the_cause_of_an_exception(file: str, function: str, raised: str, cause: str) -> None:
    assert cause_of(file, function, raised) == cause
