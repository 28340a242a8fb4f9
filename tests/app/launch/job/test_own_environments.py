"""`python:` and `activate:`: a user's environments on the site, by conda, pixi and venv."""

import shutil
import subprocess
from pathlib import Path

import pytest

from lumitui.app.launch.compose import compose, plain_script
from lumitui.app.launch.launcher_templates import TEMPLATES
from lumitui.app.runs import InputError, Runs, State
from tests.support.jobs.sites.lumi_job import LUMI, job
from tests.support.jobs.small_jobs import finish, hello_job, hello_project
from tests.support.servers.cluster import Cluster

NO_IMAGE = {"none": True}
CONDA = """#!/bin/bash
# As conda has it: the hook defines a function, in which commands fail unnoticed.
[[ $1 == shell.bash ]] || { echo "activate needs the hook" >&2; exit 1; }
cat <<'HOOK'
conda() {
  false
  [[ $1 == activate && ${2##*/} == ok* ]] || return 1
  export CONDA_PREFIX=$2 PATH="/envs/$2/bin:$PATH"
}
HOOK
"""
MICROMAMBA = """#!/bin/bash
[[ $* == "shell hook --shell bash" ]] || exit 1
echo 'micromamba() { export CONDA_PREFIX=$2; }'
"""
PIXI = """#!/bin/bash
[[ $1 == shell-hook && -f "${*: -1}" ]] || exit 1
echo "export PIXI_PROJECT_MANIFEST='${*: -1}'"
"""


def activated(
    folder: Path, place: str, prints: str, before: str = "", **programs: str
) -> tuple[int, str, str]:
    """Return the exit code, output and errors of a strict script that activates `place`."""
    (folder / "bin").mkdir(exist_ok=True)
    for name, text in programs.items():
        (folder / "bin" / name).write_text(text)
        (folder / "bin" / name).chmod(0o755)
    activate = f'. {TEMPLATES}/job/activate.sh; lumitui_activate "$1"'
    text = f"set -eo pipefail; {before}{activate}; {prints}"
    done = subprocess.run(
        ["bash", "-c", text, "bash", place],
        env={"PATH": f"{folder}/bin:/usr/bin:/bin", "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stdout.strip(), done.stderr


@pytest.mark.parametrize("name", ["envs/vit", "it's $HOME `id`", "two words"])
def test_a_virtual_environment_is_activated_by_its_folder(tmp_path: Path, name: str) -> None:
    place = tmp_path / name
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", place], check=True)
    code, said, _ = activated(tmp_path, str(place), 'python -c "import sys; print(sys.prefix)"')
    assert (code, said) == (0, str(place))


def test_a_copied_environment_is_not_taken_for_itself(tmp_path: Path) -> None:
    first, copied = tmp_path / "first", tmp_path / "copied"
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", first], check=True)
    shutil.copytree(first, copied, symlinks=True)
    code, said, errors = activated(tmp_path, str(copied), "echo went on")
    assert (code, said) == (1, "") and f"its bin/activate is of {first}" in errors


@pytest.mark.parametrize("leaves", ["", "lumitui_leave() { echo left with $?; }; "])
def test_an_activation_that_calls_exit_fails_the_job(tmp_path: Path, leaves: str) -> None:
    (tmp_path / "env" / "bin").mkdir(parents=True)
    (tmp_path / "env" / "bin" / "activate").write_text("exit 0\n")
    code, said, errors = activated(tmp_path, f"{tmp_path}/env", "echo went on", before=leaves)
    assert (code, said) == (1, "left with 1" if leaves else "")
    assert f"cannot activate {tmp_path}/env: it calls exit" in errors
    (tmp_path / "env" / "bin" / "activate").write_text("")
    code, said, errors = activated(tmp_path, f"{tmp_path}/env", "exit 0", before=leaves)
    assert (code, said, errors) == (0, "left with 0" if leaves else "", "")


@pytest.mark.parametrize(
    ("text", "code", "printed"),
    [("export IN=it", 0, "it"), ("exit 0", 1, "cannot activate"), (None, 1, "cannot activate")],
)
def test_an_activation_in_a_container_that_ends_or_fails_fails_the_rank(
    tmp_path: Path, text: str | None, code: int, printed: str
) -> None:
    place = tmp_path / "it's $HOME `id`"
    (place / "bin").mkdir(parents=True)
    if text is not None:
        (place / "bin" / "activate").write_text(f"{text}\n")
    script = compose(job(activate=str(place)), LUMI).script
    inner = script.split("bash -c '")[1].split("export RANK")[0]
    done = subprocess.run(
        ["bash", "-c", f'{inner} exec "$@"', "rank", "sh", "-c", "echo $IN"],
        env={"PATH": "/usr/bin:/bin", "ACTIVATE": str(place)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == code and printed in (done.stderr if code else done.stdout)
    assert str(place) in done.stderr or not code


def test_conda_and_its_kin_are_asked_for_an_environment_by_name_or_folder(tmp_path: Path) -> None:
    shows = 'echo "$CONDA_PREFIX"; false || echo "still strict: $-"'
    code, said, _ = activated(tmp_path, "ok-vit", shows, conda=CONDA)
    assert code == 0 and said.startswith("ok-vit\n") and "e" in said.rpartition(": ")[2]
    prefix = tmp_path / "ok-prefix"
    (prefix / "conda-meta").mkdir(parents=True)
    (prefix / "bin").mkdir()
    (prefix / "bin" / "activate").write_text("exit 9\n")  # that of conda's own base
    assert activated(tmp_path, str(prefix), shows)[1].startswith(f"{prefix}\n")
    code, _, errors = activated(tmp_path, "gone", "echo no", conda=CONDA)
    assert code == 1 and "cannot activate gone" in errors
    other = tmp_path / "other"
    other.mkdir()
    assert activated(other, "vit", "echo $CONDA_PREFIX", micromamba=MICROMAMBA)[1] == "vit"


def test_a_pixi_project_is_activated_by_its_folder(tmp_path: Path) -> None:
    project = tmp_path / "my project"
    project.mkdir()
    (project / "pixi.toml").write_text("")
    code, said, _ = activated(tmp_path, str(project), 'echo "$PIXI_PROJECT_MANIFEST"', pixi=PIXI)
    assert (code, said) == (0, f"{project}/pixi.toml")


@pytest.mark.parametrize(
    ("place", "words"),
    [("/nowhere", "neither bin/activate, conda-meta nor"), ("vit", "no conda, mamba")],
)
def test_what_cannot_be_activated_ends_the_job_and_says_why(
    tmp_path: Path, place: str, words: str
) -> None:
    code, said, errors = activated(tmp_path, place, "echo went on")
    assert (code, said) == (1, "") and words in errors and f"cannot activate {place}" in errors


def test_the_script_has_them_after_the_modules_and_before_the_program() -> None:
    spec = job(modules=["conda/24"], activate=["vit", "/p/a b"], container=NO_IMAGE)
    script = compose(spec, LUMI).script
    parts = ("module load conda/24", "_activate vit", "_activate '/p/a b'", " python ")
    at = [script.index(part) for part in parts]
    assert at == sorted(at)
    assert "lumitui_activate() {" in plain_script(compose(spec, LUMI), LUMI, "x")
    own = compose(job(python="/p/it's/bin/python", container=NO_IMAGE), LUMI).script
    assert """'/p/it'"'"'s/bin/python' "$RUN_DIR"/code/train.py""" in own
    # In a container, the folder is one of the container.
    inside = compose(job(activate="/opt/my venv"), LUMI).script
    assert "export ACTIVATE='/opt/my venv'" in inside and "lumitui_activate" not in inside
    assert """. "$ACTIVATE"/bin/activate || exit; """ in inside


@pytest.mark.parametrize("wrong", [["vit"], ["/a", "/b"]])
def test_a_container_activates_one_folder_only(wrong: list[str]) -> None:
    with pytest.raises(InputError, match="In a container only one"):
        compose(job(activate=wrong), LUMI)


@pytest.mark.parametrize(
    ("given", "words"),
    [({"activate": "~/vit"}, r"write \$HOME/vit"), ({"activate": ["-x"]}, "read it as an option"),
     ({"activate": "envs/vit"}, r"write an absolute one, like \$HOME/envs/vit"),
     ({"python": "./vit/bin/python"}, r"a relative path; write .*\$HOME/vit/bin/python"),
     ({"python": "a\nb"}, "control"), ({"python": ""}, "python"),
     ({"python": "/p", "venv": ["einops"]}, "excludes `python:`")],
)  # fmt: skip
def test_places_that_no_shell_takes_are_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        job(**given)


@pytest.mark.cluster
@pytest.mark.both_slurms
def test_the_site_is_asked_first_and_the_ranks_run_in_the_environment(
    cluster_runs: Runs, cluster: Cluster, tmp_path: Path
) -> None:
    runs, project = cluster_runs, hello_project(tmp_path)
    (project / "hello.py").write_text("import sys\nprint('prefix', sys.prefix)\n")
    transport = runs._connections.get(runs.sites.load("minilumi")).transport
    folder = "envs/it's mine"
    made = transport.run(
        f'mkdir -p envs && /usr/bin/python3 -m venv --without-pip "{folder}" && pwd'
    )
    place = f"{made.text.strip()}/{folder}"

    def previewed(**keys: object) -> list[str]:
        preview = runs.preview(hello_job(container=NO_IMAGE, **keys), project)
        assert not [one for one in preview.findings if one.rule == "bare-python"]
        found = runs.inquiries.of_preview(preview).findings
        return [one.message for one in found if one.rule == "cluster-environment"]

    assert "it has neither bin/activate" in previewed(activate="/nowhere/at all")[0]
    assert "does not start" in previewed(python="/nowhere/python")[0]
    transport.run("mkdir -p ends/bin && echo exit 0 >ends/bin/activate")
    assert "it calls exit" in previewed(activate="$HOME/ends")[0]
    assert previewed(activate="$HOME/envs/it's mine") == []
    spec = hello_job(container=NO_IMAGE, activate="$HOME/envs/it's mine")
    for keys in ({"activate": "$HOME/envs/it's mine"}, {"python": f"{place}/bin/python"}):
        spec = hello_job(container=NO_IMAGE, **keys)
        run = finish(runs, runs.send(runs.preview(spec, project)))
        log = runs.read_log(run.id)[1].decode()
        assert run.state is State.DONE, log
        assert log.count(f"prefix {place}") == 2, log
