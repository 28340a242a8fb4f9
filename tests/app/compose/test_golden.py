"""The sixteen scripts, byte by byte, and fact by fact against the guide's."""

import re
import shlex
import subprocess
from collections.abc import Iterator

import pytest

from tests.support.guide.batch_differences import BATCH_DIFFERENCES
from tests.support.guide.scripts import NAMES, SCRIPTS, Script
from tests.support.guide.task_differences import TASK_DIFFERENCES
from tests.support.jobs.golden_jobs import ARCHIVE, archive_launch, golden_path, launch_of

DIFFERENCES = (*BATCH_DIFFERENCES, *TASK_DIFFERENCES)


each_script = pytest.mark.parametrize("script", SCRIPTS, ids=NAMES)


@each_script
def test_the_script_is_the_golden_one(script: Script) -> None:
    # After a deliberate change: PYTHONPATH=src:. python -m tests.support.jobs.golden_jobs,
    # and read the diff.
    assert launch_of(script).script == golden_path(script).read_text()


def test_a_job_with_an_archive_is_the_golden_one() -> None:
    assert archive_launch().script == ARCHIVE.read_text()
    checked = subprocess.run(["bash", "-n", ARCHIVE], capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")


@each_script
def test_bash_accepts_it(script: Script) -> None:
    checked = subprocess.run(["bash", "-n", golden_path(script)], capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")


@each_script
def test_every_difference_from_the_guide_is_listed(
    script: Script,
) -> None:
    found = set(differences(script, golden_path(script).read_text()))
    listed = {(d.kind, d.key, d.change == "added") for d in DIFFERENCES if script.era in d.eras}
    assert found - listed == set()


def test_every_listed_difference_is_really_there() -> None:
    found = {
        (*item, script.era)
        for script in SCRIPTS
        for item in differences(script, golden_path(script).read_text())
    }
    listed = {(d.kind, d.key, d.change == "added", era) for d in DIFFERENCES for era in d.eras}
    assert listed - found == set()


def differences(script: Script, ours: str) -> Iterator[tuple[str, str, bool]]:
    """Yield (kind, key, whether it is added) where our text differs from the guide's."""
    lines = ours.splitlines()
    options = dict(
        line.removeprefix("#SBATCH ").partition("=")[::2] for line in lines if "#SBATCH " in line
    )
    yield from compared("directive", script.directives, options)
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
    yield from launch_differences(script, launch_words(ours), ours)


def own_lines(lines: list[str]) -> Iterator[tuple[str, str, bool]]:
    for key, text in {
        "set -eo pipefail": "set -eo pipefail",
        "umask 077": "umask 077",
        "claim": "ends here",
        "proof": "# Proof of binding",
        "exit file": "# The exit file",
    }.items():
        if any(text in line for line in lines):
            yield "setup", key, True


def exported(lines: list[str]) -> Iterator[tuple[str, str]]:
    values: dict[str, str] = {}
    for line in lines:
        if match := re.match(r"^([A-Z_]+)=(\S.*)$", line):
            values[match[1]] = match[2]
        if line.startswith("export "):
            for word in line.removeprefix("export ").split(" "):
                name, sign, value = word.partition("=")
                text = value if sign else values.get(name, "")
                if name not in ("PROOF_DIR",):
                    yield name, text.strip('"')


def launch_words(ours: str) -> list[str]:
    command = ours[ours.index("# Launch\n") :]
    command = command[command.index("srun ") : command.index(" || rc=$?")]
    return shlex.split(command.replace("\\\n", " "))


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


def launch_differences(
    script: Script, words: list[str], ours: str
) -> Iterator[tuple[str, str, bool]]:
    image = words.index("$SIF")
    call = words.index("singularity")
    srun = {word.partition("=")[0] for word in words[1:call]}
    guide_srun = {word.partition("=")[0] for word in script.srun_options}
    for option in srun - guide_srun:
        yield "srun", option, True
    assert guide_srun <= srun
    own_call = words[call:image]
    assert own_call[:2] == list(script.container_call[:2])
    assert own_call.count("-B") == script.container_call.count("-B")
    if own_call[2:] != list(script.container_call[2:]):
        yield "call", "-B", False
    sif = next(line for line in ours.splitlines() if line.startswith("SIF="))
    if sif.removeprefix("SIF=") != script.image:
        yield "call", "image", False
    rest = words[image + 1 :]
    if rest[0] != "bash":
        yield "call", "bash -c", False
        inner = ""
    else:
        inner = rest[2]
        if script.quotes == '"':
            yield "inner", "quotes", False
    for name in script.inner_exports:
        if f"{name}=" not in inner:
            assert f"export {name}=" in ours
            yield "inner", name, False
        else:
            assert f"{name}={script.inner_exports[name]}" in inner
    if "exec " in inner:
        yield "inner", "exec", True
    if "torch.distributed.run" in rest:
        yield from compared("launcher", script.launcher_options, torchrun_options(rest))
    tail = " ".join(rest)
    for option, value in script.deepspeed_options.items():
        assert f"{option} {value and '$RUN_DIR/' + value}".strip() in tail


def torchrun_options(rest: list[str]) -> dict[str, str]:
    start = rest.index("torch.distributed.run") + 1
    options = {}
    for word in rest[start:]:
        if not word.startswith("--"):
            break
        name, _, value = word.partition("=")
        quoted = f'"{value}"' if name == "--rdzv_endpoint" else value
        options[name] = quoted
    return options
