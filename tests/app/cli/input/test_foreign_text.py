"""Names and texts from elsewhere: none steers a terminal, adds a line, or a key to a file."""

import json
import re
from pathlib import Path

import pytest
import yaml

from lumitui.app.history.history import History
from lumitui.app.job.spec import parse_job, read_job
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.safe_text import CONTROL_CHARACTERS
from tests.support.jobs.made_runs import a_run
from tests.support.jobs.small_jobs import hello_project, wait_until
from tests.support.places import ROOT
from tests.support.program.command_line import HELLO, Here, envelope
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster

NAMES = {
    "key": "a\nenv: {LD_PRELOAD: evil.so}\n#.sh",
    "secrets": "b\nsecrets: [AWS_KEY]\nship_secrets: [id_rsa]\n#.sh",
    "command": "c\n::error file=x::evil\n.sh",
    "group": "d\n  ##[error]evil\n.sh",
    "hint": "e\nhint: evil\nerror: evil.sh",
    "escape": "f\x1b]0;owned\x07\x1b[2J\x9b31m.sh",
    "return": "g\rerror: evil\x0b\x85.sh",
    "bidi": "h\u202e\u2066\u061c\u2028evil.sh",
    "bytes": "i\udcff.sh",
    "properties": "j%0A,line=7,title=evil::evil.sh",
}
SCRIPT = """\
#!/bin/bash
#SBATCH --account=project_46\x1b[2J
#SBATCH --partition=small-g\x1b]0;owned\x07
#SBATCH --job-name=a\x1b[31mb\u202ec
#SBATCH --nodes=1 --gpus-per-node=1 --time=01:00:00
#SBATCH --nosuch\x1b[2J=\u202e1\r
#SBATCH --constraint=x\u202ey
module load PyTorch\x9b2J
export A="v\u202e1" B='l1
env: {LD_PRELOAD: evil.so}
::error::evil' NCCL_DEBG=\x1b[2J
echo '\u2066hi\r
::error::evil' # lumitui: ignore=no\x1b[2Jsuch
srun --cpu-bind=map_cpu:1\u202e,\x1b[2J python train.py --x "a\u202eb" --z '
secrets: [X]
' --lr=\u2028
"""


def harmless(text: str, *, commands: bool = False) -> None:
    """Assert that no terminal, no CI and no reader takes a part of `text` for lumitui's words."""
    assert not (CONTROL_CHARACTERS - set("\n\t")) & set(text), repr(text)
    for line in text.split("\n"):
        if not commands:
            assert not line.lstrip().startswith(("::", "##[")), line
        assert not re.match(r"(hint|error|warning|note): evil", line), line


def script(folder: Path, name: str, text: str = SCRIPT) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_import_writes_the_keys_of_the_script_alone(here: Here, tmp_path: Path, name: str) -> None:
    text = SCRIPT.replace(" NCCL_DEBG=\x1b[2J", "").replace("_46\x1b[2J", "_462000001")
    text = text.replace("small-g\x1b]0;owned\x07", "small-g")
    text = text.replace("#SBATCH --nosuch\x1b[2J=\u202e1\r\n", "")
    path = tmp_path / "job.yaml"
    done = here("import", str(script(tmp_path, name, text)), "--site", "lumi", "-o", str(path))
    assert done.returncode == 0, done.stderr
    harmless(done.stdout + done.stderr)
    harmless(path.read_text())
    spec = read_job(path)
    assert set(spec.env) == {"A", "B"} and spec.env["A"] == "v\u202e1"
    assert spec.secrets == spec.ship_secrets == () and "a\u202eb" in spec.args
    assert set(yaml.safe_load(path.read_text())) <= {
        "name", "site", "account", "partition", "nodes", "gpus_per_node", "time", "sbatch",
        "launcher", "strategy", "container", "script", "args", "env",
    }  # fmt: skip


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("layout", ["text", "github", "json", "diff", "guess"])
def test_lint_prints_names_and_values_harmlessly(
    here: Here, tmp_path: Path, layout: str, name: str
) -> None:
    more = {"diff": ["--diff", "--site", "lumi"], "guess": [], "json": ["--json", "--site", "lumi"]}
    words = more.get(layout, ["--format", layout, "--site", "lumi"])
    path = script(tmp_path, name)
    done = here("lint", *words, str(path))
    assert done.returncode == 1, done.stderr
    harmless(done.stderr)
    harmless(done.stdout, commands=layout == "github")
    assert done.stdout.count("\n") > 3
    if layout == "text":
        for line in done.stdout.split("\n"):
            assert re.match(r"$|.*:\d+:\d+: (error|warning|note) [a-z-]+ |\d* +[|→] |\d+ \| ", line)
    if layout == "github":
        for line in done.stdout.rstrip("\n").split("\n"):
            assert re.fullmatch(
                r"::(error|warning|notice) file=[^:,\n]*,line=\d+,col=\d+(,end\w+=\d+)?,"
                r"title=[a-z-]+( \(\w+\))?::.*",
                line,
            ), line
            # As the runner reads it back.
            given = re.findall(r"file=([^,]*)", line)[0]
            for escaped, plain in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ",")):
                given = given.replace(escaped, plain)
            if not (CONTROL_CHARACTERS - set("\r\n")) & set(name):
                assert given.replace("%25", "%") == str(path)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_file_that_is_missing_or_wrong_is_named_harmlessly(
    here: Here, tmp_path: Path, name: str
) -> None:
    wrong = script(tmp_path, name, f"name: x\n{json.dumps(name)}: 1\n")
    for path in (wrong, tmp_path / f"no{name}"):
        for words in (
            ["preview", str(path)], ["fix", str(path)], ["submit", str(path)],
            ["why", "--log", str(path), "--json"], ["why", "--log", str(path)],
            ["site", "check", "--file", str(path)], ["rules", name], ["show", name],
            ["lint", str(path), "--select", name], ["new", "--example", name],
            ["history", "--filter", name], ["new", "--site", name, "-o", "x"],
            ["export", str(path), name], [name],
        ):  # fmt: skip
            done = here(*words)
            harmless(done.stdout + done.stderr)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("verb", ["new --trainer ddp", "new --example jax"])
def test_a_first_job_file_has_the_name_and_nothing_else(
    here: Here, tmp_path: Path, verb: str, name: str
) -> None:
    path = tmp_path / "first" / "job.yaml"
    path.parent.mkdir()
    done = here(*verb.split(), "--site", "laptop", "--name", name, "--output", str(path))
    harmless(done.stdout + done.stderr)
    if done.returncode == 0:
        harmless(path.read_text())
        assert parse_job(path.read_text(), "job").name == name
    else:
        assert done.returncode == 2 and not path.exists()


def test_a_log_is_explained_harmlessly(here: Here, tmp_path: Path) -> None:
    evil = "".join(NAMES.values()).replace("\udcff", "")
    log = tmp_path / "log"
    text = f'Traceback (most recent call last):\n  File "{evil}", line 3\nValueError: {evil}\n'
    log.write_text(text + f"{evil}\nsrun: error: nid{evil}: task 0: Exited with exit code 1\n")
    for words in ([], ["--json"], ["--state", "node failed"]):
        done = here("why", "--log", str(log), *words)
        assert done.returncode == 0, done.stderr
        harmless(done.stdout + done.stderr)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_run_is_shown_harmlessly(here: Here, runs: Runs, home: Home, name: str) -> None:
    line = name.replace("\n", " ").replace("\udcff", "")
    kept = History(home.settings.history)
    for number, state in enumerate((State.FAILED, State.DONE)):
        kept.begin(
            a_run(
                f"other-{number:06d}",
                name=line,
                site="laptop",
                script=f"#!{line}\n",
                command=line,
                folder=f"/scratch/{line}",
                project=f"/home/{line}",
                reason=line,
                word=line,
                nodes_used=line,
                note=line,
                job_file=line,
                state=state,
                job_id="7",
                binding=line,
            )
        )
    kept.close()
    one, two, there = "other-000000", "other-000001", str(home.data / "here")
    for words in (
        ["history"], ["history", "--json"], ["show", one], ["diff", one, two], ["why", one],
        ["why", one, "--helpdesk"], ["scaling", one], ["grid", one], ["cancel", one],
        ["note", one, name], ["note", one, "--tag", name.split("\n")[0]], ["status"],
        ["resubmit", one], ["logs", one], ["fetch", one, name, "--to", there],
    ):  # fmt: skip
        done = here(*words)
        harmless(done.stdout + done.stderr)


def test_words_of_slurm_are_shown_harmlessly(
    home: Home, here: Here, cluster: Cluster, tmp_path: Path
) -> None:
    # Slurm keeps such a name, and hands it out as it is.
    home.add_cluster(cluster)
    evil = "x\x1b]0;owned\x07\u202e\n::error::evil"
    path = hello_project(tmp_path) / "job.yaml"
    text = re.sub("site: .*\npartition: .*", "site: minilumi\naccount: project_462000001\n"
                  "partition: small-g", HELLO)  # fmt: skip
    path.write_text(text + "sbatch: [--begin=now+1hour]\n")
    sent = here("submit", str(path), "--yes", "--json")
    assert sent.returncode == 0, sent.stderr
    run = envelope(sent)["data"]
    quoted = "'" + evil.replace("'", "'\\''") + "'"
    job = cluster.login(
        f"sbatch --parsable -p small-g -A project_462000001 --gpus=1 -t 5 -H "
        f"--job-name={quoted} --comment={quoted} --wrap true"
    ).stdout.strip()
    try:
        renamed = cluster.login(f"scontrol update jobid={run['job_id']} comment={quoted}")
        assert renamed.returncode == 0
        raw = cluster.login(f"squeue -h -j {job} -o %j").stdout
        assert "\x1b" in raw, raw
        for words in (["status"], ["status", "--json"], ["history"], ["show", run["id"]],
                      ["site", "live", "minilumi"], ["site", "live", "minilumi", "--json"],
                      ["site", "check", "minilumi"], ["why", run["id"]]):  # fmt: skip
            done = here(*words)
            assert "Traceback" not in done.stderr, done.stderr
            harmless(done.stdout + done.stderr)
    finally:
        cluster.login(f"scancel {job}")
        assert here("cancel", run["id"], "--yes").returncode == 0
    wait_until(lambda: here("status").stdout == "", 60, "the end of the run")


def test_only_one_place_of_the_command_line_prints() -> None:
    """`show`, `put`, `say` and `Reply` of output.py: all text passes through safe_text there."""
    printing = re.compile(r"click\.s?echo\(|\bprint\(|sys\.std(?:out|err)\.(?:write|buffer)")
    found = {
        (path.name, line.strip())
        for path in (ROOT / "app/cli").rglob("*.py")
        for line in path.read_text().split("\n")
        if printing.search(line) and path.name != "output.py"
    }
    assert {name for name, _ in found} == {"main.py", "process.py", "send_progress.py"}
    assert len(found) == 5, found  # --version, a crash report, a log on a terminal, its steps
