"""Whatever becomes of the probe, the job goes on; `proof: strict` alone stops it, and says so."""

from dataclasses import dataclass

import pytest

from lumitui.app.job.spec import JobSpec
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.binding.binding_jobs import (
    Plant,
    Proving,
    before_proof,
    in_probe,
    in_tasks,
    where_job,
)
from tests.support.jobs.small_jobs import wait_until

TWO = where_job(ranks=2)
STRICT = where_job(ranks=2, proof="strict")
MASKS = "0x00fe000000000000,0xfe00000000000000"
SWAPPED = "0xfe00000000000000,0x00fe000000000000"


@dataclass(frozen=True)
class Failure:
    """What becomes of the probe, and what the verdict says of it."""

    name: str
    says: tuple[str, ...]
    script: Plant | None = None
    probe: Plant | None = None
    spec: JobSpec = TWO
    kind: str = "not measured"


def sooner(script: str) -> str:
    return script.replace("limit=60 ", "limit=3 ").replace("grace=15", "grace=2")


def in_its_launch(old: str, new: str) -> Plant:
    """Change the probe's launch, and not the program's: a function of its own."""

    def plant(script: str) -> str:
        head, begin, rest = script.partition("launch() {\n")
        body, end, tail = rest.partition("\n}\n")
        changed = f"{begin}{body.replace(old, new)}{end}"
        proof, program, last = tail.partition("lumitui_run ")
        return f"{head}{changed}{proof}{begin}{body}{end}{program}{last}" if program else script

    return plant


HANGS = in_probe("trap '' TERM; while :; do sleep 1; done")
FAILURES = (
    Failure(
        "it fails",
        ("No rank reported.", "The probe's launch ended with code 3: srun: error: nid00500"),
        probe=in_probe("exit 3"),
    ),
    Failure(
        "it is killed",
        ("No rank reported.", "The probe's launch ended with code 137", "Killed"),
        probe=in_probe("kill -9 $$"),
    ),
    Failure(
        "one rank of it is killed",
        ("Only 1 of 2 ranks reported", "Rank 1 did not report."),
        probe=in_probe('[ "$RANK" = 0 ] || { sleep 1; kill -9 $$; }'),
    ),
    Failure(
        "it hangs and ignores that it is told to end",
        ("No rank reported.", "timed out"),
        sooner,
        HANGS,
    ),
    Failure(
        "its container does not start",
        ("No rank reported.", "FATAL: could not open image /nowhere.sif"),
        in_its_launch('singularity run "$SIF"', "singularity run /nowhere.sif"),
        spec=where_job(ranks=2, container="laif"),
    ),
    Failure(
        "no node has taskset",
        ("their environment has no taskset",),
        lambda script: in_its_launch('exec "$@"\'', 'PATH=$RUN_DIR/.bin; exec "$@"\'')(
            before_proof(
                'mkdir "$RUN_DIR/.bin"; for name in sh sed tr uname mv cut cat; '
                'do ln -s "$(command -v $name)" "$RUN_DIR/.bin/$name"; done'
            )(script)
        ),
    ),
    Failure(
        "the disk is full for binding.json",
        ("The job left no binding.json", "could not write the file"),
        before_proof('ln -s /dev/full "$RUN_DIR/.binding.json"'),
    ),
    Failure(
        "its folder cannot be made",
        ("No rank reported.",),
        before_proof('echo >"$RUN_DIR/.proof-1"'),
    ),
    Failure(
        "binding.json cannot be replaced",
        ("The job left no binding.json",),
        before_proof('mkdir -p "$RUN_DIR/binding.json/.binding.json/full"'),
    ),
    Failure(
        "the disk is full for the exit file too",
        ("All 2 ranks measured",),
        before_proof('ln -s /dev/full "$RUN_DIR/.exit-1"'),
        kind="proved",
    ),
    Failure("it is off", ("`proof: off`",), spec=where_job(ranks=2, proof="off")),
)


def assert_went_on(proving: Proving, failures: tuple[Failure, ...]) -> None:
    sent = [proving.send(item.spec, item.script, item.probe) for item in failures]
    for item, run in zip(failures, proving.finish(sent), strict=True):
        log = proving.log(run)
        assert (run.state, run.word) == (State.DONE, "COMPLETED"), f"{item.name}: {log}"
        assert len(proving.where(run)) == 2, f"{item.name}: {log}"
        found = proving.runs.proof(run)
        assert found.kind == item.kind, f"{item.name}: {found}\n{log}"
        for words in item.says:
            assert words in found.sentence, f"{item.name}: {found.sentence}\n{log}"


def test_the_probes_failure_never_fails_a_job(proving: Proving) -> None:
    assert_went_on(proving, FAILURES)


@pytest.mark.slow
def test_what_a_stopped_probe_leaves_is_not_in_torchruns_way(proving: Proving) -> None:
    torchrun = where_job(launcher="torchrun", ranks=2)
    hangs = Failure("it hangs", ("timed out",), sooner, HANGS, spec=torchrun)
    assert_went_on(proving, (hangs,))


STOPS: dict[str, tuple[Plant | None, Plant | None]] = {
    "local rank 0 has its cores 49-55 on 0 of 1": (lambda sent: sent.replace(MASKS, SWAPPED), None),
    "local rank 1 has its cores 57-63 on 0 of 1": (None, in_probe('[ "$RANK" != 1 ] || exit 0')),
    "not all ranks see the same GPUs": (
        in_tasks("[ $RANK = 0 ] || export ROCR_VISIBLE_DEVICES=0;"),
        None,
    ),
    "local rank 0 has its cores 49-55 on 0 of 1 nodes": (
        before_proof('ln -s /dev/full "$RUN_DIR/.binding.json"'),
        None,
    ),
}


def test_a_strict_proof_alone_stops_before_the_launch_and_says_why(proving: Proving) -> None:
    right = proving.send(STRICT)
    wrong = [proving.send(STRICT, *planted) for planted in STOPS.values()]
    right, *ended = proving.finish([right, *wrong])
    assert (right.state, right.rc) == (State.DONE, 0), proving.log(right)
    assert len(proving.where(right)) == 2
    for what, run in zip(STOPS, ended, strict=True):
        assert (run.state, run.rc) == (State.FAILED, 78), proving.log(run)
        assert proving.where(run) == []
        reasons = {item.id: item.sentence for item in proving.runs.why(run.id)}
        assert what in reasons["proof-strict"], reasons


@pytest.mark.slow
def test_a_requeued_job_is_proved_anew(proving: Proving) -> None:
    # The second attempt has the first two masks the wrong way round.
    run = proving.send(
        where_job(ranks=2, args=["wait"]),
        lambda sent: sent.replace(
            "# Binding:",
            "if ((attempt > 1)); then swap=1; else swap=; fi\n# Binding:",
        ).replace(
            f'CPU_BIND_MASKS="{MASKS}"',
            f'CPU_BIND_MASKS="{MASKS}"; [[ -z $swap ]] || CPU_BIND_MASKS="{SWAPPED}"',
        ),
    )

    def kind() -> str:
        proving.runs.refresh("minilumi")
        now = proving.runs.history.get(run.id)
        return f"{proving.runs.proof(now).kind} {now.attempt}"

    wait_until(lambda: kind() == "proved 1", what="the first proof")
    job_id = proving.runs.history.get(run.id).job_id
    assert proving.cluster.admin("scontrol", "requeue", str(job_id)).returncode == 0
    wait_until(lambda: kind() == "differs 2", 240, what="the second proof")
    proving.cluster.login(f"touch {run.folder}/go")
    [ended] = proving.finish([run])
    assert ended.state is State.DONE
