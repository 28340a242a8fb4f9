"""`proof: strict` ends the jobs whose verdict is `differs`, and no job that is proved."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from lumitui.app.job.spec import parse_job
from lumitui.app.knowledge.failure.diagnose import diagnose
from lumitui.app.knowledge.failure.diagnosis import RunEnd
from lumitui.app.launch.compose import compose
from lumitui.app.launch.launcher_templates import TEMPLATES
from lumitui.remote.site.sites import BUILT_IN, Sites
from lumitui.remote.site.states import State
from tests.support.jobs.binding.binding_reports import ALL_GPUS, CORES, EXACT, reports, verdict_on

OWN = [str(local) for local in range(8)]


def stopped(folder: Path, items: list[dict[str, object]]) -> list[str]:
    """Return what job.sh's own function says of the reports; nothing if it would launch."""
    (folder / "binding.json").write_text("[\n" + ",\n".join(map(json.dumps, items)) + "\n]\n")
    script = 'set -eo pipefail; . "$1"; shift; strict=; lumitui_require "$@"; echo "$strict"'
    done = subprocess.run(
        ["bash", "-c", script, "require", TEMPLATES / "job/proof.sh", "2", *CORES],
        env={"PATH": "/usr/bin:/bin", "RUN_DIR": str(folder)},
        capture_output=True, text=True, timeout=20, check=True,
    )  # fmt: skip
    said = done.stderr.splitlines()
    assert done.stdout.strip() == ("78" if said else "")
    return said


@pytest.mark.parametrize(
    ("gpus", "kind", "said"),
    [
        ([ALL_GPUS] * 8, "proved", ""),
        ([""] * 8, "proved", ""),
        (OWN, "proved", ""),
        (["GPU-aa,GPU-09"] * 8, "differs", None),
        ([ALL_GPUS[::-1]] * 8, "differs", "all ranks see the GPUs 7,6,5,4,3,2,1,0, not in order"),
        (["0,0,1"] * 8, "differs", "all ranks see the GPUs 0,0,1, not in order"),
        (OWN[::-1], "differs", "not all ranks see the same GPUs"),
        ([ALL_GPUS] * 7 + ["7"], "differs", "not all ranks see the same GPUs"),
    ],
)  # fmt: skip
def test_strict_judges_the_visible_gpus_as_the_verdict_does(
    tmp_path: Path, gpus: list[str], kind: str, said: str | None
) -> None:
    items = [item | {"gpus": gpus[n % 8]} for n, item in enumerate(reports(EXACT))]
    assert verdict_on(items).kind == kind
    if said is not None:  # a driver that shows too few is lumitui_require_gpus's
        assert stopped(tmp_path, items) == [f"lumitui: {said}; nothing was launched."] * bool(said)


def test_strict_ends_a_job_whose_ranks_are_dealt_over_the_nodes_in_turn(tmp_path: Path) -> None:
    items = [
        item | {"rank": local * 2 + node}
        for node in range(2)
        for local, item in enumerate(reports(replace(EXACT, nodes=1)))
    ]
    said = stopped(tmp_path, items)
    assert len(said) == 14
    assert said[0] == "lumitui: rank 2 is local rank 1, planned 2; nothing was launched."
    why = diagnose(RunEnd(State.FAILED, rc=78, log="\n".join(said)))[0]
    assert why.id == "proof-strict" and "rank 2 is local rank 1" in why.sentence


def test_strict_has_no_effect_where_no_cores_are_planned() -> None:
    text = (
        "name: t\nsite: lumi\naccount: project_462000001\npartition: small-g\n"
        "time: '01:00:00'\nscript: a.py\nnodes: 2\ngpus_per_node: 1\nproof: strict\n"
    )
    site = Sites([BUILT_IN]).load("lumi")
    assert "lumitui_require" not in compose(parse_job(text, "t"), site).script
    whole = parse_job(f"{text}exclusive: true\n", "t")
    assert "lumitui_require 2 " in compose(whole, site).script
