"""The GPUs of a running job: what the real commands print is read, and one step asks all nodes."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.follow.sites.gpu_words import gpu_rows, gpu_summary
from lumitui.app.history.listing.filters import parse_filter
from lumitui.app.history.listing.find_runs import Filter, RunListing
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.job_step import GpuReading, parse_gpus, read_gpus
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.scheduler.slurm import CLEAN
from lumitui.remote.site.errors import InputError, RefusedError
from lumitui.remote.site.meters import GpuReadings
from lumitui.remote.transport.local import Local
from tests.support.jobs.small_jobs import hello_job, hello_project, wait_until
from tests.support.servers.cluster import Cluster

STAND_IN = Path(__file__).parents[2] / "support" / "replies" / "rocm_smi"
AMD = GpuReadings(command=f"sh {STAND_IN}", prints="rocm-smi", idle_watts=150)
NVIDIA = GpuReadings(command="nvidia-smi", prints="nvidia-smi", idle_watts=80)

# nvidia-smi(1) and its --help-query-gpu: index, power.draw, memory.used, memory.total,
# utilization.gpu; what a GPU does not report is [N/A] or [Not Supported].
CSV = """0: node as01r1b02
1: node as01r1b03
0: 0, 412.55, 60123, 65247, 98
0: 1, 66.10, 4, 65247, 0
1: 0, [N/A], 4, 65247, [Not Supported]
"""


# Beside a running step Slurm refuses one on several nodes of Slingshot; one on one node starts.
SLINGSHOT = """\
command() { return 1; }
srun() {
  case $* in
  *--nodes=1*) env srun "$@" ;;
  *) echo 'srun: error: Application launch failed: Error configuring interconnect'; return 1 ;;
  esac
}
"""


def srun(folder: Path, text: str) -> None:
    """Make `text` the srun that is found first."""
    (folder / "srun").write_text(f"#!/bin/sh\n{text}\n")
    (folder / "srun").chmod(0o700)


def test_what_rocm_smi_prints_on_two_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    # As srun does: one process for each node, lines labelled with the task.
    srun(tmp_path, 'while [ "$1" != sh ]; do shift; done\n'
         'for n in 0 1; do SLURMD_NODENAME=nid00500$n "$@" | sed "s/^/$n: /"; done')  # fmt: skip
    found = read_gpus(Local(), ":", "8123", 2, AMD)
    assert [(gpu.node, gpu.index) for gpu in found] == [
        (f"nid00500{node}", index) for node in (0, 1) for index in range(4)
    ]
    assert found[0] == GpuReading("nid005000", 0, 482.0, 51539607552, 68702699520, 100.0)
    assert found[1].watts is None and found[1].use == 99
    said = gpu_summary(found, AMD.idle_watts)
    assert said[0] == "8 GPUs on 2 nodes, 1144 W together."
    assert "GPU 2 on nid005001 draws 90 W: idle." in said
    assert "GPU 3 on nid005000 is not used: idle." in said
    assert len(said) == 5
    first = gpu_rows(found, AMD.idle_watts)[0]
    assert first == ("nid005000", "2", "90 W", "11 MB of 69 GB", "0 %", "idle")


def test_what_nvidia_smi_prints() -> None:
    busy, idle, mute = parse_gpus(CSV.encode(), NVIDIA)
    assert busy == GpuReading("as01r1b02", 0, 412.55, 60123 * 1048576, 65247 * 1048576, 98.0)
    assert (idle.watts, idle.node) == (66.1, "as01r1b02")
    assert (mute.watts, mute.use, mute.node) == (None, None, "as01r1b03")
    assert gpu_summary([busy, idle, mute], 80)[1:] == ["GPU 1 on as01r1b02 draws 66.1 W: idle."]


def test_a_step_that_does_not_start_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    srun(tmp_path, "echo 'srun: error: Unable to create step for job 1: Bad job' >&2; exit 1")
    with pytest.raises(RefusedError) as caught:
        read_gpus(Local(), ":", "1", 1, AMD)
    assert "Unable to create step for job 1: Bad job" in str(caught.value)
    for words in ("/tmp/../sh: 1: rocm-smi: not found", "bash: rocm-smi: command not found"):
        srun(tmp_path, f"echo '0: node n1'; echo '0: {words}'; exit 127")
        with pytest.raises(RefusedError) as caught:
            read_gpus(Local(), ":", "1", 1, AMD)
        assert str(caught.value).startswith(
            "lumitui cannot query the job's GPUs: its nodes have no `rocm-smi`."
        )
        assert "0:" not in str(caught.value) and "gpu_readings" in str(caught.value)
    srun(tmp_path, "exit 7")
    with pytest.raises(RefusedError, match="srun ended with status 7"):
        read_gpus(Local(), ":", "1", 1, AMD)


@given(st.binary(max_size=200), st.sampled_from([AMD, NVIDIA]))
def test_no_bytes_make_a_parser_raise(content: bytes, readings: GpuReadings) -> None:
    list(parse_gpus(content, readings))
    list(parse_gpus(b'0: {"card0": ' + content + b"}\n0: 0, " + content, readings))


def test_the_gpus_of_a_job_on_two_nodes_of_the_mini_cluster(
    cluster_runs: Runs, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = cluster_runs
    profile = runs.sites.path("minilumi")
    # The cluster's user may not read the tests' folder.
    stand_in = Path(cluster.ssh_config).parents[1] / "rocm_smi"
    stand_in.write_text(STAND_IN.read_text())
    stand_in.chmod(0o755)
    profile.write_text(
        f"{profile.read_text()}\ngpu_readings:\n  command: sh {stand_in}\n"
        "  prints: rocm-smi\n  idle_watts: 150\n"
    )
    project = hello_project(tmp_path)
    (project / "hello.py").write_text("import time\ntime.sleep(120)\n")
    run = runs.send(runs.preview(hello_job(nodes=2, gpus_per_node=4), project))
    with pytest.raises(InputError, match="is not running"):
        runs.clusters.gpus(run.id)

    def running() -> bool:
        runs.refresh("minilumi")
        return runs.history.get(run.id).state is State.RUNNING

    wait_until(running, what="the job runs")
    before = runs.footprint("minilumi").requests
    try:
        found = runs.clusters.gpus(run.id)
        assert runs.footprint("minilumi").requests == before + 1
        assert len({gpu.node for gpu in found.gpus}) == 2 and len(found.gpus) == 8
        assert gpu_summary(found.gpus, found.idle_watts)[0] == "8 GPUs on 2 nodes, 1144 W together."
        monkeypatch.setattr("lumitui.remote.scheduler.slurm.CLEAN", f"{CLEAN}\n{SLINGSHOT}")
        assert runs.clusters.gpus(run.id).gpus == found.gpus, "one node after the other"

        def watched() -> bool:
            runs.refresh("minilumi")
            return runs.history.get(run.id).gpu_use is not None

        wait_until(watched, what="the job itself has read its GPUs")
        use = runs.history.get(run.id).gpu_use
        assert use is not None and (use.gpus, use.busy, use.low, use.mean) == (4, 2, 0.5, 49.8)
        assert (use.used_mib, use.memory_mib) == (49152, 65520) and use.seconds in (10, 30)
        listing = RunListing(Filter(terms=parse_filter("idle:>30%")), now=0.0)
        assert [item.id for item in runs.history.finder.entries(listing, 9, None)] == [run.id]
    finally:
        runs.cancel(run.id)
        stand_in.unlink()
