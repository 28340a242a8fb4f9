"""`lumitui lint` as a person, a pipe and a CI use it."""

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from lumitui.app.cli.main import lumitui
from lumitui.app.cli.process import run_verb
from lumitui.app.knowledge.finding_text import CheckedScript
from lumitui.app.knowledge.script_check import Checking
from lumitui.remote.site.errors import InternalError
from lumitui.remote.site.masked_text import masked
from tests.support.places import ROOT
from tests.support.program.command_line import PROGRAM, Here, envelope, environ, lt, told
from tests.support.program.home import Home

CLEAN = """#!/bin/bash -l
#SBATCH --account=project_465000123
#SBATCH --partition=small-g
#SBATCH --nodes=1
#SBATCH --gpus-per-node=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=7
#SBATCH --mem=60G
#SBATCH --time=02:00:00
#SBATCH --output=%x-%j.out

module purge
module use /appl/local/containers/ai-modules
module load singularity-AI-bindings
SIF=/appl/local/containers/sif-images/lumi-pytorch-rocm-6.2.4-python-3.12-pytorch-v2.7.1.sif

srun --cpus-per-task=7 singularity exec "$SIF" bash -c '$WITH_CONDA; python train.py --epochs 4'
"""
BAD = CLEAN.replace("#SBATCH --mem", "# SBATCH --exclude=nid005001\n#SBATCH --mem")
RULE = "nearly-a-directive"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "job.sh"
    path.write_text(BAD)
    return path


def test_a_finding_is_printed_with_its_place_and_the_exit_code_is_1(
    home: Home, script: Path
) -> None:
    done = lt(home, "lint", str(script))
    assert done.returncode == 1
    assert done.stdout.startswith(f"{script}:8:1: warning {RULE} `# SBATCH")
    assert "checked for lumi, because of the partition small-g" in done.stderr
    assert "If it is for another site, pass --site." in done.stderr
    assert "Found 1 warning in 1 script. --fix changes 1 of them." in done.stderr


def test_a_crash_loses_no_other_script_and_has_an_exit_code_of_its_own(
    home: Home, script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    check = Checking.check

    def broken(self: Checking, path: str, text: str, folder: str = "") -> CheckedScript:
        if path.endswith("broken.sh"):
            raise ZeroDivisionError
        return check(self, path, text, folder)

    monkeypatch.setattr(Checking, "check", broken)
    (script.parent / "broken.sh").write_text(CLEAN)
    words = ["lint", "--site", "lumi", str(script.parent / "broken.sh"), str(script)]
    assert run_verb(lumitui, words) == InternalError.exit_code != 1
    out, err = capsys.readouterr()
    assert f"{script}:8:1: warning {RULE}" in out
    assert "broken.sh: not checked, because lumitui crashed." in err
    assert "Internal error in `lint`: ZeroDivisionError." in err
    assert run_verb(lumitui, [*words, "--json"]) == InternalError.exit_code
    reply = json.loads(capsys.readouterr().out)
    assert [item["rule"] for item in reply["data"][0]["findings"]] == [RULE]
    assert reply["error"]["exit_code"] == InternalError.exit_code


def test_a_script_without_findings_exits_0(here: Here, script: Path) -> None:
    script.write_text(CLEAN)
    done = here("lint", str(script), "--site", "lumi")
    assert (done.returncode, done.stdout.strip(), done.stderr) == (
        0, "", "Nothing found in 1 script.\n",
    )  # fmt: skip


KEY = "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH"


@pytest.mark.parametrize("words", [(), ("--diff",), ("--format", "github"), ("--json",)])
def test_no_report_shows_the_value_of_a_secret(
    here: Here, script: Path, words: tuple[str, ...]
) -> None:
    script.write_text(
        BAD.replace("# SBATCH --exclude", f"export HF_TOKEN={KEY}\n# SBATCH --exclude")
        + f"srun python a.py --hub-token {KEY} --nprocs $HF_TOKEN  # {KEY}\n"
    )
    done = here("lint", str(script), *words)
    assert KEY not in done.stdout + done.stderr
    if not words:
        assert f"8 | export HF_TOKEN={'*' * len(KEY)}\n" in done.stdout


def test_the_words_login_node_are_not_a_secret(here: Here, script: Path) -> None:
    script.write_text(CLEAN + "python -m pip install transformers\n")
    done = here("lint", str(script), "--site", "mn5")
    assert "on a login node, or upload wheels" in done.stdout
    assert masked("wandb login node-secret-1") == "wandb login …"


def test_diff_names_the_findings_without_a_mechanical_fix(here: Here, script: Path) -> None:
    script.write_text(CLEAN.replace("bash -c '$WITH", 'bash -c "$WITH').replace(" 4'", ' 4"'))
    done = here("lint", str(script), "--diff")
    assert (done.returncode, done.stdout.strip()) == (0, "")
    assert "Found 1 error in 1 script. None has a mechanical fix." in done.stderr


def test_what_cannot_be_read_or_is_no_rule_exits_2(here: Here, tmp_path: Path) -> None:
    told(here("lint", str(tmp_path / "none.sh")), 2, "Cannot read")
    bare = tmp_path / "bare.sh"
    bare.write_text("#!/bin/bash\nhostname\n")
    told(here("lint", str(bare), "--cluster"), 2, "Pass the site with --site.")
    told(here("lint", str(bare), "--site", "lumi", "--ignore", "accont"), 2, "mean account")


def test_without_a_site_the_rules_that_hold_everywhere_are_applied(
    here: Here, tmp_path: Path
) -> None:
    script = tmp_path / "any.sh"
    script.write_text("#!/bin/bash\n#SBATCH -p nowhere -t 60 --mem=0\nsrun python train.py\n")
    done = here("lint", str(script))
    assert done.returncode == 0
    assert "only site-independent rules ran" in done.stderr
    assert "`lumitui site add" in done.stderr
    script.write_text(script.read_text() + "#SBATCH -N 2\n")
    done = here("lint", str(script), "--json")
    data = envelope(done)["data"][0]
    assert (done.returncode, data["site"]) == (1, None)
    assert [item["rule"] for item in data["findings"]] == ["directive-after-command"]


def test_rules_are_selected_and_ignored_by_name(here: Here, script: Path) -> None:
    assert here("lint", str(script), "--ignore", RULE).returncode == 0
    assert here("lint", str(script), "--select", f"account,{RULE}").returncode == 1
    assert here("lint", str(script), "--select", "account").returncode == 0


def test_diff_shows_the_change_and_fix_makes_it(here: Here, script: Path) -> None:
    done = here("lint", str(script), "--diff")
    assert done.returncode == 1
    assert "-# SBATCH --exclude=nid005001\n+#SBATCH --exclude=nid005001\n" in done.stdout
    assert script.read_text() == BAD
    assert here("lint", str(script), "--fix").returncode == 0
    assert script.read_text() == BAD.replace("# SBATCH", "#SBATCH")


def piped(home: Home, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*PROGRAM, "lint", "-", *words], input=BAD, capture_output=True, text=True,
        env=environ(home), timeout=120,
    )  # fmt: skip


def test_standard_input_is_read_and_its_fixed_text_printed(home: Home) -> None:
    assert f"-:8:1: warning {RULE}" in piped(home).stdout
    done = piped(home, "--fix")
    assert (done.returncode, done.stdout) == (0, BAD.replace("# SBATCH", "#SBATCH"))


def test_formats_for_programs_are_well_formed(here: Here, script: Path) -> None:
    data = envelope(here("lint", str(script), "--json"))["data"]
    assert (data[0]["site"], data[0]["findings"][0]["rule"]) == ("lumi", RULE)
    line = here("lint", str(script), "--format", "github").stdout
    assert line.startswith(f"::warning file={script},line=8,col=1,endColumn=")


def test_a_script_that_it_sources_is_read_from_its_folder_alone(here: Here, script: Path) -> None:
    (script.parent / "common.sh").write_text("srun --cpu-per-task=7 hostname\n")
    outside = script.parent.parent / "outside.sh"
    outside.write_text("srun --cpu-per-task=7 hostname\n")
    lines = "source common.sh\nsource ../outside.sh\nsource link.sh\n"
    (script.parent / "link.sh").symlink_to(outside)
    script.write_text(CLEAN + lines)
    done = here("lint", str(script))
    assert done.returncode == 1
    assert done.stdout.count("unknown-srun-option") == 1
    assert done.stdout.startswith(f"{script.parent}/common.sh:1:6: error unknown-srun-option")


def test_odd_bytes_are_said_and_break_nothing(here: Here, tmp_path: Path) -> None:
    texts = (b"", b"\0" * 99, b"\xff\xfe#!", b"#!/bin/bash\r\nif", b"$(" * 999)
    scripts = [tmp_path / f"{number}.sh" for number in range(len(texts))]
    for script, data in zip(scripts, texts, strict=True):
        script.write_bytes(data)
    for words in ((), ("--diff",), ("--fix",)):
        done = here("lint", *map(str, scripts), "--site", "lumi", *words)
        assert (done.returncode, "Traceback" in done.stderr) == (1, False)


def test_a_folder_stands_for_the_scripts_below_it(here: Here, script: Path) -> None:
    inner, hidden = script.parent / "jobs", script.parent / ".git"
    for folder in (inner, hidden):
        folder.mkdir()
        (folder / "train.slurm").write_text(CLEAN)
    (script.parent / "data.txt").write_text("#SBATCH in a text\n")
    (script.parent / "setup.sh").write_text("module load rocm\n")
    done = here("lint", str(script.parent), "--json")
    names = [one["script"] for one in envelope(done)["data"]]
    assert (names, done.returncode) == ([str(script), str(inner / "train.slurm")], 1)
    (inner / "train.slurm").unlink()
    told(here("lint", str(inner)), 2, "has no job script", "`#SBATCH` lines")


def test_a_program_or_a_job_file_is_sent_to_the_verb_that_reads_it(
    here: Here, tmp_path: Path
) -> None:
    program, job = tmp_path / "train.py", tmp_path / "job.yaml"
    program.write_text("#!/usr/bin/env python\nfor i in range(3):\n    print(i)\n")
    job.write_text("name: a\n")
    told(here("lint", str(program)), 2, "Python program", f"`lumitui new --script {program}`")
    told(here("import", str(program)), 2, "Python program", f"`lumitui new --script {program}`")
    told(here("preview", str(program)), 2, "Python program", f"`lumitui new --script {program}`")
    told(here("lint", str(job)), 2, "is a job file", f"`lumitui preview {job}` checks it.")
    program.write_text("#!/usr/bin/env python\n#SBATCH -N 1 -t 5\n")
    assert here("lint", str(program)).returncode == 0


BROKEN = "title: Breeze\ncores_per_gpuu: 4\n"


@pytest.fixture
def broken(home: Home) -> Path:
    """A profile with mistakes among the user's own."""
    path = home.config / "sites" / "breeze.yaml"
    path.write_text(BROKEN)
    return path


@pytest.mark.parametrize(
    "words",
    [("lint", "job.sh"), ("import", "job.sh"), ("rules", "account"), ("site", "show")],
    ids=lambda words: words[0],
)
def test_a_broken_profile_is_left_out_with_a_warning(
    here: Here, script: Path, broken: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(script.parent)
    script.write_text(CLEAN)
    done = here(*words)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("warning: lumitui skips the site breeze: ") == 1
    assert "breeze.yaml:2: cores_per_gpuu: unknown key" in done.stderr


def test_a_broken_profile_that_is_asked_for_is_an_error(
    here: Here, script: Path, broken: Path
) -> None:
    told(here("site", "show", "breeze"), 2, "cores_per_gpuu: unknown key")
    for words in (("lint", str(script)), ("import", str(script)), ("rules",)):
        told(here(*words, "--site", "breeze"), 2, "cores_per_gpuu: unknown key")
    assert here("lint", str(script), "--site", "lumi").returncode == 1
    assert here("site", "show", "lumi").returncode == 0


def test_the_site_may_be_the_file_of_a_profile_that_is_not_installed(
    here: Here, script: Path, tmp_path: Path
) -> None:
    profile = tmp_path / "ours.yaml"
    profile.write_text(
        "extends: lumi\nrules:\n- {id: our-account, severity: error, field: sbatch, "
        "matches: ^--account=project_465, message: Ours., do: Ask us., source: our wiki}\n"
    )
    done = here("lint", str(script), "--site", str(profile), "--select", "our-account", "--json")
    data = envelope(done)["data"][0]
    assert (data["site"], [one["rule"] for one in data["findings"]]) == ("ours", ["our-account"])
    told(here("lint", str(script), "--site", "none.yaml"), 2, "The file none.yaml does not exist.")


@pytest.mark.parametrize(("least", "code"), [("error", 0), ("warning", 1), ("note", 1)])
def test_the_severity_that_fails_is_chosen(here: Here, script: Path, least: str, code: int) -> None:
    assert here("lint", str(script), "--fail-on", least).returncode == code


def test_a_note_fails_only_if_it_is_asked_for(here: Here, script: Path) -> None:
    script.write_text(CLEAN + "# lumitui: ignore=account\n")
    assert here("lint", str(script)).returncode == 0
    assert here("lint", str(script), "--fail-on", "note").returncode == 1
    told(here("lint", str(script), "--fail-on", "note", "--diff"), 2, "no effect with --diff")


def test_a_baseline_leaves_out_its_findings_until_a_new_one_appears(
    here: Here, script: Path, tmp_path: Path
) -> None:
    known = str(tmp_path / "known.txt")
    assert here("lint", str(tmp_path), "--write-baseline", known).returncode == 0
    script.write_text(BAD.replace("#SBATCH --time", "#SBATCH --job-name=a\n#SBATCH --time"))
    done = here("lint", str(tmp_path), "--baseline", known)  # the line has moved
    assert (done.returncode, done.stdout.strip()) == (0, "")
    assert f"{known} leaves out 1 known finding." in done.stderr
    script.write_text(BAD.replace("# SBATCH", "# SBATCH --exclude=nid005001\n# SBATCH"))
    new = here("lint", str(script), "--baseline", known, "--json")  # a copy of the line is new
    assert [one["at"]["line"] for one in envelope(new)["data"][0]["findings"]] == [9]
    assert new.returncode == 1
    told(here("lint", str(script), "--baseline", str(script)), 2, "is not a baseline.")
    told(here("lint", str(script), "--baseline", known, "--diff"), 2, "no effect with --diff")
    text = script.read_text()
    told(here("lint", str(script), "--write-baseline", str(script)), 2, "is not a baseline.")
    assert script.read_text() == text, "the script itself is not overwritten"
    worse = Path(known)
    worse.write_text(worse.read_text().replace(" warning ", " note ").replace(" error ", " note "))
    assert here("lint", str(script), "--baseline", known).returncode == 1, "it is worse than known"


def test_a_notebook_is_refused_as_one(here: Here, tmp_path: Path) -> None:
    path = tmp_path / "train.ipynb"
    path.write_text(json.dumps({"cells": [{"source": ["#SBATCH"]}], "nbformat": 4}))
    told(here("lint", str(path)), 2, "is a notebook, not an sbatch script", "jupyter nbconvert")


def test_a_script_with_only_cr_line_endings_is_named_and_fixed(here: Here, tmp_path: Path) -> None:
    path = tmp_path / "job.sh"
    path.write_bytes(CLEAN.replace("\n", "\r").encode())
    data = envelope(here("lint", "--site", "lumi", "--json", str(path)))["data"]
    assert [one["rule"] for one in data[0]["findings"]] == ["windows-line-ends"]
    assert "a single line.\n" in here("lint", "--site", "lumi", str(path)).stdout
    assert here("lint", "--site", "lumi", "--fix", str(path)).returncode == 0
    assert path.read_bytes() == CLEAN.encode()


def test_the_hooks_of_pre_commit_run_once_for_all_scripts() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    page = (ROOT / "docs" / "lint.md").read_text()
    assert all(hook["require_serial"] for hook in hooks)
    assert "require_serial: true" in page
