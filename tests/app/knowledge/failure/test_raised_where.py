"""What an exception means by where it was raised, and by the system's words in it."""

import pytest

from tests.support.jobs.failed_logs import why

TRACEBACK = """\
Traceback (most recent call last):
  File "/scratch/run/train.py", line 8, in main
    work()
  File "{file}", line 70, in {function}
    raise error
{raised}
"""


PATH = "FileNotFoundError: [Errno 2] No such file or directory: 'plot-it'"
NAME = "socket.gaierror: [Errno -2] Name or service not known"


@pytest.mark.parametrize(
    ("file", "function", "raised", "cause"),
    [
        ("/usr/lib/python3.11/subprocess.py", "_execute_child", PATH, "no-command"),
        ("/usr/lib/python3.11/pathlib.py", "open", PATH, "no-file"),
        ("/env/torch/distributed/rendezvous.py", "_tcp_rendezvous_handler", NAME, "rendezvous"),
        ("/env/urllib3/connection.py", "_new_conn", NAME, "no-internet"),
        ("/env/tool/io.py", "run", "ToolError: open /x/y: permission denied", "permission"),
        ("/env/tool/io.py", "run", "ToolError: mmap: Cannot allocate memory", "host-memory"),
        ("/env/tool/io.py", "run", "ToolError: it is not allowed", "exception"),
    ],
)
def test_the_cause_of_an_exception(file: str, function: str, raised: str, cause: str) -> None:
    assert why(TRACEBACK.format(file=file, function=function, raised=raised))[0].id == cause
