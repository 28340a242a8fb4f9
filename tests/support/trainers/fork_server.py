"""A process that has imported PyTorch once and forks a trainer from itself for each request.

A rank that starts by itself takes three seconds of a core before its first step, nearly all of
them imports. Run as `python fork_server.py MODULE…`; it reads one JSON object a line on stdin
and answers each with one line: start → {"pid"}, wait → {"code"}, signal → {}.
"""

import importlib
import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any, NoReturn


def begin(request: dict[str, Any]) -> NoReturn:
    """Become the program: its environment, output, arguments and own folder on sys.path."""
    out = os.open(request["out"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    for number, file in ((0, nowhere), (1, out), (2, out)):
        os.dup2(file, number)
    os.environ.clear()
    os.environ.update(request["environ"])
    os.chdir(request["environ"]["RUN_DIR"])
    sys.argv = request["words"]
    sys.path.insert(0, str(Path(sys.argv[0]).parent))
    # No thread but the main one gets Python's lock unless that waits: what hangs then hangs always.
    sys.setswitchinterval(100)
    code = 1
    try:
        # What a test changes runs first, with the trainers' modules importable.
        exec(compile(request["before"], "<before>", "exec"), {"__name__": "before"})
        program = Path(sys.argv[0]).read_text()
        main = {"__name__": "__main__", "__file__": sys.argv[0]}
        sys.modules["__main__"].__dict__.update(main)
        exec(compile(program, sys.argv[0], "exec"), sys.modules["__main__"].__dict__)
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else 1
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def wait(pid: int, seconds: float) -> int | None:
    """The exit code, negative for a signal; None while it runs for longer than that."""
    ends = time.monotonic() + seconds
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > ends:
            return None
        time.sleep(0.005)


def serve() -> None:
    """Answer until stdin ends, then kill what is left."""
    running: set[int] = set()
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, Any] = {}
        if request["do"] == "start":
            pid = os.fork()
            if not pid:
                begin(request)
            running.add(pid)
            answer = {"pid": pid}
        elif request["do"] == "wait":
            code = wait(request["pid"], request["seconds"])
            if code is not None:
                running.discard(request["pid"])
            answer = {"code": code}
        elif request["pid"] in running:
            os.kill(request["pid"], request["number"])
        print(json.dumps(answer), flush=True)
    for pid in running:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        importlib.import_module(name)
    print("{}", flush=True)
    serve()
