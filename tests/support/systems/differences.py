"""What our job script does otherwise than the one that it stands for."""

import re

from lumitui.remote.site import walltime
from tests.support.systems.launch_line import parts_of
from tests.support.systems.rows import Row


def differences(row: Row, script: str) -> dict[str, tuple[str, str]]:
    """Return the options and parts of the launch that differ, each with theirs and ours."""
    theirs = _canonical(row.asks) | parts_of(row.launch)
    ours = _canonical(_directives(script)) | parts_of(_launch(script))
    return {
        key: (theirs.get(key, ""), ours.get(key, ""))
        for key in sorted({*theirs, *ours})
        if theirs.get(key) != ours.get(key)
    }


def _directives(script: str) -> dict[str, str]:
    found = re.findall(r"^#SBATCH --([\w-]+)(?:=(.*))?$", script, re.MULTILINE)
    return dict(found)


def _launch(script: str) -> str:
    """Return the launcher's command: in the function `launch`, the line that passes on "$@"."""
    found = re.search(r"^launch\(\) \{\n(.*?)^\}$", script, re.MULTILINE | re.DOTALL)
    assert found, "the script has no launch()"
    lines = found[1].replace("\\\n", " ").splitlines()
    *_, line = (line for line in lines if '"$@"' in line)
    # Hydra's is in the background of a group, where what ends it can wait for it.
    return line.strip().removeprefix("{ ").removesuffix(" & launcher=$!")


def _canonical(options: dict[str, str]) -> dict[str, str]:
    """Return the options as Slurm means them: one form for times, no order in lists."""
    named = {"tasks-per-node": "ntasks-per-node"}  # sbatch accepts both
    kept = {f"--{named.get(name, name)}": value for name, value in options.items()}
    if "--time" in kept:
        kept["--time"] = str(walltime.seconds_of(kept["--time"]))
    if "--gres" in kept:
        kept["--gres"] = ",".join(sorted(kept["--gres"].split(",")))
    return kept
