"""What the job does with a preflight's result, and what a person reads of it."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumitui.app.explain import run_facts
from lumitui.app.explain.proof.binding_proof import verdict
from lumitui.app.explain.proof.probe_report import preflight_of
from lumitui.app.job.spec import changed, parse_job
from lumitui.app.knowledge.failure.diagnose import diagnose
from lumitui.app.knowledge.failure.diagnosis import RunEnd
from lumitui.app.launch.compose import compose
from lumitui.app.launch.launcher_templates import TEMPLATES
from lumitui.app.tui.panes.proof_pane import proof_lines
from lumitui.remote.site.sites import BUILT_IN, Sites
from lumitui.remote.site.states import State
from tests.support.jobs.binding.binding_reports import EXACT, reports, verdict_on

SLOW = "rank 5 on nid005001: its GEMM reached 61 TFLOP/s, the median is 102"
GOOD = {
    "state": "good", "why": "", "seconds": 9.1, "findings": [],
    "figures": {"gemm": 102.4, "node": 81.0, "all": 70.2},
}  # fmt: skip
BAD = GOOD | {"state": "bad", "why": SLOW, "findings": [{"ranks": [5], "text": SLOW}]}
LAUNCHES = {
    # What takes the program's place: it gets the words that come after `launch`.
    "good": f"echo '{json.dumps(GOOD)}' >\"$RUN_DIR/preflight.json\"",
    "bad": f"echo '{json.dumps(BAD)}' >\"$RUN_DIR/preflight.json\"",
    "no torch": "echo \"python3: ModuleNotFoundError: No module named 'torch'\" >&2; exit 1",
    "no python": "echo 'bash: python: command not found' >&2; exit 127",
    "crash": 'echo \'{"state": "begun", "why": "x"}\' >"$RUN_DIR/preflight.json";'
    " echo 'srun: error: nid000007: task 9: Segmentation fault' >&2; exit 139",
    "cold": "sleep 60",
    "hang": 'echo \'{"state": "begun", "why": "x"}\' >"$RUN_DIR/preflight.json"; sleep 60',
}


def run(folder: Path, launch: str, mode: str) -> tuple[str, list[str], list[Any]]:
    """Call job.sh's own functions; return its exit code, its lines, and binding.json."""
    script = f"""set -eo pipefail
        . {TEMPLATES / "job/proof.sh"}
        strict= attempt=1 MASTER_PORT=12345
        launch() {{ {LAUNCHES[launch]}; }}
        lumitui_preflight {mode} launch python preflight.py
        lumitui_report
        echo "strict=$strict\""""
    done = subprocess.run(
        ["bash", "-c", script],
        env={"PATH": "/usr/bin:/bin", "RUN_DIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    said = [line for line in done.stderr.splitlines() if line.startswith("lumitui: ")]
    return done.stdout.splitlines()[-1], said, json.loads((folder / "binding.json").read_text())


@pytest.mark.parametrize(
    ("launch", "state", "says", "ends"),
    [
        ("good", "good", None, False),
        ("bad", "bad", SLOW, True),
        ("no torch", "not run", "lumitui: preflight not run: no torch.", False),
        ("no python", "not run", "lumitui: preflight not run: it ended with 127", False),
        ("crash", "bad", "it ended with 139: srun: error: nid000007: task 9", True),
    ],
)
def test_what_the_job_does_with_a_result(
    tmp_path: Path, launch: str, state: str, says: str | None, ends: bool
) -> None:
    strict, said, [record] = run(tmp_path, launch, "end")
    assert record["preflight"]["state"] == state
    assert strict == ("strict=79" if ends else "strict=")
    assert (says is None and not said) or (says is not None and says in said[0])
    strict, said, _ = run(tmp_path, launch, "warn")
    assert strict == "strict="
    if ends:
        assert said[0].endswith("; the job continues.")


@pytest.mark.parametrize(
    ("launch", "code", "says"),
    [
        ("hang", "79", "preflight: it did not end within 1 s; nothing was launched."),
        # Nobody knows whether what has not begun would have been slow.
        ("cold", "", "preflight not run: it did not begin within 1 s."),
    ],
)
def test_a_preflight_costs_no_more_than_its_limit(
    tmp_path: Path, launch: str, code: str, says: str
) -> None:
    machinery = (TEMPLATES / "job/proof.sh").read_text()
    short = machinery.replace("local mode=$1 limit=25", "local mode=$1 limit=1")
    (tmp_path / "proof.sh").write_text(short)
    script = (
        f'. "$RUN_DIR/proof.sh"; attempt=1 MASTER_PORT=1 strict=; '
        f'launch() {{ {LAUNCHES[launch]}; }}; lumitui_preflight end launch x; echo "=$strict"'
    )
    done = subprocess.run(
        ["bash", "-c", script],
        env={"PATH": "/usr/bin:/bin", "RUN_DIR": str(tmp_path)},
        capture_output=True, text=True, timeout=40,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == f"={code}", done.stderr
    assert f"lumitui: {says}" in done.stderr


def test_why_names_the_preflight_as_the_cause() -> None:
    log = f"0: preflight: {SLOW}\nlumitui: preflight: {SLOW}; nothing was launched.\n"
    spec = parse_job(
        "name: t\nsite: lumi\naccount: project_462000001\npartition: standard-g\n"
        "time: '01:00:00'\ntrainer: ddp\npreflight: end\n",
        "t",
    )
    found = diagnose(RunEnd(State.FAILED, rc=79, log=log, spec=spec))
    assert found[0].id == "preflight" and SLOW in found[0].sentence
    # A warning ends nothing.
    own = changed(spec, {"preflight": "warn"}, "t")
    warned = f"lumitui: preflight: {SLOW}; the job continues.\nKeyError: 'x'\n"
    assert diagnose(RunEnd(State.FAILED, rc=79, log=warned, spec=own))[0].id != "preflight"


def test_the_proof_shows_it_beside_the_binding() -> None:
    text = json.dumps([*reports(EXACT), {"preflight": BAD}])
    found = verdict(text, EXACT, ended=True)
    assert found.kind == "proved"
    assert run_facts.preflight(found) == [f"Preflight: {SLOW}."]
    assert proof_lines(found)[-1].plain == f"Preflight: {SLOW}."
    found = verdict(json.dumps([{"preflight": GOOD}]), EXACT, proof="off")
    assert found.sentence == "The job file has `proof: off`."
    assert run_facts.preflight(found) == [
        "Preflight: good, a GEMM of 102 TFLOP/s per rank, all-reduce of 81 GB/s within a node, "
        "70.2 GB/s over all ranks."
    ]
    no = json.dumps([*reports(EXACT), {"preflight": {"state": "not run", "why": "no torch"}}])
    assert run_facts.preflight(verdict(no, EXACT)) == ["Preflight not run: no torch."]
    assert run_facts.preflight(verdict_on(reports(EXACT))) == []


@settings(max_examples=25)
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.text() | st.sampled_from([*GOOD]), inner)
        ),
        max_leaves=10,
    )
)
def test_no_record_raises(record: object) -> None:
    preflight_of(record)
    preflight_of({"state": "bad", "why": record, "findings": [record], "figures": record})


def test_the_job_asks_for_it_as_file_and_profile_say() -> None:
    site = Sites([BUILT_IN]).load("lumi")
    spec = parse_job(
        "name: t\nsite: lumi\naccount: project_462000001\npartition: standard-g\n"
        "time: '01:00:00'\nscript: mine.sh\nnodes: 2\n",
        "t",
    )
    line = '\nlumitui_preflight warn launch python "$RUN_DIR"/preflight.py --gpus=8 --bus=c1,'
    launch = compose(spec, site)
    assert line in launch.script and "preflight_verdict.py" in launch.texts
    assert (
        "\nlumitui_preflight end " in compose(changed(spec, {"preflight": "end"}, "t"), site).script
    )
    launch = compose(changed(spec, {"preflight": "off"}, "t"), site)
    assert "preflight" not in launch.script and "preflight.py" not in launch.texts
    # Without a proof the result still has to arrive; a plain script for Slurm has none of it.
    launch = compose(changed(spec, {"proof": "off"}, "t"), site)
    assert "\nlumitui_report\n" in launch.script
    part = compose(changed(spec, {"gpus_per_node": 2}, "t"), site).script
    assert "--gpus=2 --bus=c1,c6\n" in part
