"""The example `notebook`: a server on the job's node that only the owner of its token can use."""

import json
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from lumitui.app.history.run import Run
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.small_jobs import wait_until
from tests.support.program.command_line import lt
from tests.support.program.home import Home
from tests.support.servers.sshd import free_port
from tests.support.trainers.own_scripts import environment

STAND_IN = '''\
"""In place of JupyterLab: takes its arguments and variables, and asks for the token."""
import http.server, os, sys
options = dict(word.removeprefix("--").partition("=")[::2] for word in sys.argv[1:])
with open(os.environ["JUPYTER_TOKEN_FILE"]) as file:
    token = file.read()
os.makedirs(os.environ["JUPYTER_RUNTIME_DIR"], exist_ok=True)

class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        right = self.headers["Authorization"] == f"token {token}"
        self.send_response(200 if right else 403)
        self.end_headers()
        self.wfile.write(b'{"kernels": 0}')

http.server.HTTPServer((options["ip"], int(options["port"])), Answers).serve_forever()
'''


def answer(port: int, token: str) -> int:
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/status")
    request.add_header("Authorization", f"token {token}")
    try:
        with urllib.request.urlopen(request, timeout=20) as reply:
            assert "kernels" in json.load(reply)
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code


def everything_readable(run: Run) -> str:
    """Return what others could read of the run: its scripts, its log, and all command lines."""
    folder = Path(run.folder)
    texts = [path.read_text() for path in folder.glob("*.*") if path.is_file()]
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return "\n".join([*texts, listed.stdout])


@pytest.mark.parametrize("kind", ["stand-in", pytest.param("real", marks=pytest.mark.slow)])
def test_the_notebook_is_reached_through_the_port_and_only_with_its_token(
    home: Home, runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    job, port = tmp_path / "job.yaml", free_port()
    assert lt(home, "new", "--example", "notebook", "--output", str(job)).returncode == 0
    job.write_text(job.read_text().replace('"8888"', f'"{port}"'))
    (tmp_path / "first.ipynb").write_text("{}")
    python = sys.executable
    if kind == "real":
        python = str(environment("jupyterlab", ("jupyterlab==4.6.6",)))
        config = Path.home() / ".jupyter" / "jupyter_server_config.json"
        config.parent.mkdir()
        config.write_text('{"ServerApp": {"allow_root": true}}')
    else:
        (tmp_path / "jupyterlab").mkdir()
        (tmp_path / "jupyterlab" / "__init__.py").touch()
        (tmp_path / "jupyterlab" / "__main__.py").write_text(STAND_IN)
    monkeypatch.setenv("LUMITUI_PYTHON", python)
    monkeypatch.setenv("JUPYTER_TOKEN", "guessed")
    preview = runs.preview(job)
    assert not preview.errors
    run = runs.send(preview)
    folder = Path(run.folder)
    try:
        wait_until(lambda: (folder / "jupyter").is_dir(), 60, "the start of the server")
        assert runs.refresh() and runs.history.get(run.id).state is State.RUNNING
        forwarded = runs.forward(run.id, port, 0)
        wait_until(forwarded.is_up, 60, "the server at its port")
        shown = lt(home, "shell", run.id, "--", "cat", "jupyter_token").stdout
        token = (folder / "jupyter_token").read_text()
        assert shown == token and len(token) == 48
        assert answer(forwarded.port, token) == 200
        assert {answer(forwarded.port, other) for other in ("", "guessed")} == {403}
        modes = [stat.S_IMODE(path.stat().st_mode) for path in (folder / "jupyter_token", folder)]
        assert modes == [0o600, 0o700]
        log = next(folder.glob("attempt-1.out")).read_text()
        assert f"lumitui forward {run.id} {port} --open" in log
        assert token not in everything_readable(run)
        assert (folder / "notebooks" / "first.ipynb").is_file()
        forwarded.close()
    finally:
        runs.cancel(run.id)
