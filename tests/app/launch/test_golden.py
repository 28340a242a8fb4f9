"""The scripts of the guide, of `export` and of other launchers, byte by byte and fact by fact.

Five are in `tests/golden` to be read; `tests/frozen` holds the hash of each.
"""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from lumitui.app.launch.launcher_templates import TEMPLATES
from lumitui.remote.site.run_folder import MACHINERY
from tests.support.guide.scripts import NAMES, SCRIPTS, Script
from tests.support.jobs.sites.golden_jobs import exported_scripts, golden_scripts, launch_of
from tests.support.places import GOLDEN

each_script = pytest.mark.parametrize("script", SCRIPTS, ids=NAMES)


def test_the_scripts_are_the_golden_ones() -> None:
    # After a deliberate change: PYTHONPATH=src:. python -m tests.support.jobs.sites.golden_jobs,
    # and read the diff.
    kept = {path: path.read_text() for path in golden_scripts() if path.exists()}
    assert len(kept) == 5 and kept.items() <= golden_scripts().items()


def test_a_person_can_read_each_of_them_at_a_glance() -> None:
    assert {path for path, text in golden_scripts().items() if text.count("\n") > 64} == set()


@each_script
def test_the_launch_stands_in_it_once(script: Script) -> None:
    text = launch_of(script).script
    assert (text.count("  srun "), text.count('"$SIF"'), text.count("launch() {")) == (1, 1, 1)
    names = re.findall(r"^(\w+) launch ", text, re.MULTILINE)
    assert names == ["lumitui_prove", "lumitui_run"]


def test_what_the_scripts_call_is_in_the_file_beside_them() -> None:
    machinery = "".join(
        (TEMPLATES / "job" / name).read_text()
        for name in (
            MACHINERY,
            "proof.sh",
            "failed_rank.sh",
            "chain.sh",
            "relaunch.sh",
            "compiled.sh",
            "stage.sh",
            "notify.sh",
            "gpus.sh",
            "debug.sh",
        )
    )
    defined = set(re.findall(r"^(lumitui_\w+)\(\) \{", machinery, re.MULTILINE))
    text = (TEMPLATES / "job/job.sh.j2").read_text()
    called = set(re.findall(r"lumitui_\w+", text)) - {"lumitui_"}
    assert called and called <= defined
    assert {name for name in defined if machinery.count(name) == 1} <= called


def test_reading_the_file_beside_them_does_nothing(tmp_path: Path) -> None:
    state = "<(compgen -v; set +o; trap)"
    text = f"set -u; before=; before=$(cat {state})\n"
    text += f". {TEMPLATES / 'job' / MACHINERY}; . {TEMPLATES / 'job/proof.sh'}\n"
    text += f'diff <(echo "$before") {state}'
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", exported_scripts().values(), ids=map(str, exported_scripts()))
def test_an_exported_script_needs_nothing_of_lumitui(text: str) -> None:
    assert not re.search(r"lumitui_|attempt|claim|probe|proof", text)


def test_bash_accepts_them() -> None:
    for path, text in golden_scripts().items():
        checked = subprocess.run(["bash", "-nc", text], capture_output=True, text=True)
        assert (checked.returncode, checked.stderr) == (0, ""), path


LISTED = yaml.safe_load((GOLDEN / "guide_differences.yaml").read_text())


def test_what_differs_from_the_guide_is_what_is_listed() -> None:
    found = {
        (*item, script.era)
        for script in SCRIPTS
        for item in differences(script, launch_of(script).script)
    }
    assert found == {
        (kind, key, change == "added", era)
        for kind, key, change, _, _, *only in LISTED
        for era in only or ("seed", "current")
    }


def differences(script: Script, ours: str) -> Iterator[tuple[str, str, bool]]:
    """Yield (kind, key, whether it is added) where our text differs from the guide's.

    What sbatch and the launch line are asked for is compared in test_seeds.py.
    """
    lines = ours.splitlines()
    exports = dict(exported(lines))
    if not script.masks:
        assert "CPU_BIND_MASKS" not in ours
    else:
        assert f'CPU_BIND_MASKS="{",".join(script.masks)}"' in lines
    yield from compared("export", script.exports, exports)
    modules = tuple(line for line in lines if line.startswith("module "))
    if modules != script.modules:
        yield "module", "lines", False
    for line in script.setup:
        if line not in lines:
            yield "setup", line, False
    yield from own_lines(lines)


def own_lines(lines: list[str]) -> Iterator[tuple[str, str, bool]]:
    for key, text in {
        "set -eo pipefail": "set -eo pipefail",
        "claim": "lumitui_begin",
        "proof": "lumitui_prove launch ",
        "exit file": "lumitui_run launch ",
    }.items():
        if any(text in line for line in lines):
            yield "setup", key, True


def exported(lines: list[str]) -> Iterator[tuple[str, str]]:
    values: dict[str, str] = {}
    for line in lines:
        if match := re.match(r"^([A-Z_]+)=(\S.*)$", line):
            values[match[1]] = match[2]
        if line.startswith("export "):
            words = line.removeprefix("export ").partition(" # ")[0]
            value_of = r"""(\w+)(?:(=)(\$\(\(.*?\)\)|"[^"]*"|\S*))?"""
            for name, sign, value in re.findall(value_of, words):
                text = value if sign else values.get(name, "")
                yield name, text.strip('"')


def compared(
    kind: str, guide: dict[str, str], ours: dict[str, str]
) -> Iterator[tuple[str, str, bool]]:
    for key in guide.keys() | ours.keys():
        if key not in ours:
            yield kind, key, False
        elif key not in guide:
            yield kind, key, True
        elif guide[key] != ours[key]:
            yield kind, key, False
