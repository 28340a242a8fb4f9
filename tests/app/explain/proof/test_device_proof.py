"""The verdict on the devices that the driver shows each rank, and what `proof: strict` does."""

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from lumitui.app.explain.proof.binding_proof import Verdict
from lumitui.app.explain.run_facts import proof_table
from lumitui.app.knowledge.failure.diagnose import diagnose
from lumitui.app.knowledge.failure.diagnosis import RunEnd
from lumitui.app.launch.launcher_templates import TEMPLATES
from lumitui.remote.site.states import State
from tests.support.jobs.binding.binding_reports import EXACT, Report, reports, verdict_on

BUSES = ("c1", "c6", "c9", "ce", "d1", "d6", "d9", "de")
LAYOUT = replace(EXACT, gpu_bus=BUSES)
ALL = ",".join(f"0000:{bus}:00.0" for bus in BUSES)


def seen() -> list[Report]:
    """What the ranks of two healthy nodes report."""
    return [
        item | {"devices": ALL, "device": f"0000:{BUSES[rank % 8]}:00.0"}
        for rank, item in enumerate(reports(LAYOUT))
    ]


def on(items: list[Report]) -> Verdict:
    return verdict_on(items, LAYOUT)


def test_ranks_on_the_planned_devices_are_proved() -> None:
    found = on(seen())
    assert found.kind == "proved" and "Devices" not in found.sentence
    table = proof_table(found)
    assert table.titles[-2] == "PCI" and table.rows[3].cells[-2:] == ("ce:00.0", "ok")


def test_a_rank_on_another_bus_is_named_with_the_plan() -> None:
    items = seen()
    items[3]["device"] = "0000:d1:00.0"
    assert on(items[:8] + items[8:]).sentence.startswith(
        "Rank 3 on nid005001: it sees GPU 0000:d1:00.0, planned ce."
    )


def test_a_rank_that_sees_no_gpu_is_named() -> None:
    items = seen()
    items[9] |= {"devices": "none", "device": ""}
    found = on(items)
    assert found.kind == "differs"
    assert found.sentence == "Rank 9 on nid005002: it requested a GPU but sees none."


def test_a_lost_gpu_is_named() -> None:
    items = seen()
    items[7] |= {"devices": ALL.rpartition(",")[0], "device": ""}
    assert "the driver shows 7 GPUs, planned 8" in on(items).sentence


def test_two_ranks_with_one_gpu_are_found_without_a_plan_of_buses() -> None:
    items = seen()
    items[5]["device"] = items[4]["device"]
    found = verdict_on(items, EXACT)
    assert found.kind == "differs"
    assert "Rank 5 on nid005001: its GPU 0000:d1:00.0 is also rank 4's" in found.sentence


def test_a_whole_address_may_be_planned() -> None:
    whole = replace(LAYOUT, gpu_bus=tuple(f"0001:{bus}:00.0" for bus in BUSES))
    assert "planned 0001:c1:00.0" in verdict_on(seen(), whole).sentence


def test_devices_that_no_driver_shows_are_no_proof() -> None:
    items = [item | {"devices": "", "device": ""} for item in seen()]
    found = on(items)
    assert found.kind == "not measured"
    assert found.sentence.endswith("Devices not measured: the driver did not report the GPUs.")
    found = on(seen()[:15] + items[15:])
    assert found.kind == "not measured" and "the GPUs of rank 15." in found.sentence
    # Where no GPUs are asked for, none are missed.
    assert verdict_on(items, replace(EXACT, on_cpu=True)).kind == "proved"


def test_reports_of_an_older_probe_are_judged_as_before() -> None:
    found = on(reports(LAYOUT))
    assert found.kind == "proved" and "Devices" not in found.sentence
    assert "PCI" not in proof_table(found).titles


def require(tmp_path: Path, items: list[Report], *buses: str) -> tuple[str, list[str]]:
    """Ask job.sh's own function; return its exit code of the job, and what it says."""
    text = "[\n" + ",\n".join(map(json.dumps, items)) + "\n]\n"
    (tmp_path / "binding.json").write_text(text)
    script = 'set -eo pipefail; . "$1"; shift; strict=; lumitui_require_gpus "$@"; echo "$strict"'
    done = subprocess.run(
        ["bash", "-c", script, "require", TEMPLATES / "job/proof.sh", "2", "8", *buses],
        env={"PATH": "/usr/bin:/bin", "RUN_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )
    return done.stdout.strip(), done.stderr.splitlines()


@pytest.mark.parametrize("buses", [BUSES, tuple(ALL.split(",")), ()], ids=["bus", "address", "-"])
def test_strict_ends_the_job_where_a_device_is_not_the_planned_one(
    tmp_path: Path, buses: tuple[str, ...]
) -> None:
    items = seen()
    assert require(tmp_path, items, *buses) == ("", [])
    items[3] |= {"device": "0000:5d:ce.0"} if buses else {"device": ""}
    code, said = require(tmp_path, items, *buses)
    gpu = f"its GPU {buses[3]}" if buses else "GPU"
    assert code == "78"
    line = f"lumitui: the driver shows local rank 3 {gpu} on 1 of 2 nodes; nothing was launched."
    assert said == [line]
    why = diagnose(RunEnd(State.FAILED, rc=78, log=line + "\n"))[0]
    assert why.id == "proof-strict" and re.search(r"\(the driver shows .* nodes\)", why.sentence)


def test_strict_ends_the_job_where_no_driver_says_anything(tmp_path: Path) -> None:
    items = [item | {"devices": "", "device": ""} for item in seen()]
    code, said = require(tmp_path, items, *BUSES)
    assert code == "78" and len(said) == 8 and "on 0 of 2 nodes" in said[0]
