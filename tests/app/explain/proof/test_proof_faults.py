"""Faults of binding planted into real jobs: each is found, and named by its rank."""

from dataclasses import dataclass

import pytest

from lumitui.app.cli.views import show
from lumitui.app.job.spec import JobSpec
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.binding.binding_jobs import Plant, Proving, in_probe, in_tasks, where_job

FOUR = where_job(ranks=4)
# The masks of local ranks 0 to 3: cores 49-55, 57-63, 17-23, 25-31.
MASKS = ("0x00fe000000000000", "0xfe00000000000000", "0x0000000000fe0000", "0x00000000fe000000")


@dataclass(frozen=True)
class Fault:
    """What is planted, and what the verdict must say."""

    name: str
    kind: str
    wrong: tuple[int, ...]
    """The ranks that must be named as wrong, and no others."""
    says: tuple[str, ...]
    """What the sentence must hold."""
    script: Plant | None = None
    probe: Plant | None = None
    spec: JobSpec = FOUR
    state: State = State.DONE
    why: str = ""
    """The first diagnosis, where the job fails."""


def masks(*changed: str) -> Plant:
    return lambda script: script.replace(
        f'CPU_BIND_MASKS="{",".join(MASKS)}"', f'CPU_BIND_MASKS="{",".join(changed)}"'
    )


def replaced(old: str, new: str) -> Plant:
    return lambda text: text.replace(old, new)


def doubled(mask: str) -> str:
    return f"{int(mask, 16) * (1 + (1 << 64)):#x}"


RENAME = '&& mv -f "$RUN_DIR/.binding.json"'
FAULTS = (
    Fault(
        "one rank's mask",
        "differs",
        (2,),
        ("Rank 2 on nid00500", "has cores 17-22, planned 17-23 (only 6 of 7)"),
        masks(MASKS[0], MASKS[1], "0x00000000007e0000", MASKS[3]),
    ),
    Fault(
        "order of the masks",
        "differs",
        (0, 3),
        (
            "Ranks 0, 3 differ.",
            "has cores 25-31, planned 49-55 (local rank 3's)",
            "has cores 49-55, planned 25-31 (local rank 0's)",
        ),
        masks(MASKS[3], MASKS[1], MASKS[2], MASKS[0]),
    ),
    Fault(
        "reserved core in a mask",
        "not measured",
        (),
        ("No rank reported.", "CPU binding outside of job step allocation"),
        masks("0x00ff000000000000", *MASKS[1:]),
        state=State.FAILED,
        why="cpu-bind-reserved",
    ),
    Fault(
        "second hardware threads",
        "differs",
        (0, 1, 2, 3),
        (
            "Ranks 0-3 differ.",
            "has cores 49-55,113-119, planned 49-55 (and their second hardware threads)",
        ),
        masks(*map(doubled, MASKS)),
        spec=where_job(ranks=4, sbatch=["--hint=multithread"]),
    ),
    Fault(
        "another GPU, none, all",
        "differs",
        (1, 2, 3),
        (
            "Ranks 1-3 differ.",
            "Rank 1 on nid00500",
            "sees GPU 3, the other ranks of its node see 0,1,2,3",
        ),
        in_tasks(
            "case $RANK in 1) export ROCR_VISIBLE_DEVICES=3 ;; 2) export ROCR_VISIBLE_DEVICES= ;; "
            "3) unset ROCR_VISIBLE_DEVICES ;; esac;"
        ),
    ),
    Fault(
        "GPUs in another order",
        "differs",
        (0, 1, 2, 3),
        ("its GPU is 3, planned 0: the list is 3,2,1,0",),
        in_tasks("export HIP_VISIBLE_DEVICES=3,2,1,0;"),
    ),
    Fault(
        "a GPU each, but one sees all",
        "differs",
        (3,),
        ("Rank 3 on nid00500", "sees GPU 0,1,2,3, planned 3"),
        in_tasks("[ $RANK = 3 ] || export ROCR_VISIBLE_DEVICES=$LOCAL_RANK;"),
    ),
    Fault(
        "a rank missing",
        "not measured",
        (),
        ("Only 3 of 4 ranks reported", "Rank 2 did not report."),
        probe=in_probe('[ "$RANK" != 2 ] || exit 0'),
    ),
    Fault(
        "a rank twice",
        "differs",
        (1,),
        ("Rank 1 on nid00500", "two processes report this rank", "Rank 2 did not report."),
        in_tasks("[ $RANK != 2 ] || RANK=1;"),
    ),
    Fault(
        "two nodes, two wrongs",
        "differs",
        (1, 6),
        (
            "Ranks 1, 6 differ.",
            "has cores 57-62, planned 57-63 (only 6 of 7)",
            "Rank 6 on nid00500",
            "sees no GPU, planned 4",
        ),
        in_tasks(
            "[ $RANK != 1 ] || taskset -cp 57-62 $$ >/dev/null; "
            "[ $RANK != 6 ] || export ROCR_VISIBLE_DEVICES=;"
        ),
        spec=where_job(ranks=4, nodes=2),
    ),
    Fault(
        "half a report of one rank",
        "not measured",
        (),
        ("Only 3 of 4", "Rank 2 did not report, and 1 report cannot be read."),
        probe=in_probe(
            '[ "$RANK" != 2 ] || { echo \'{"rank": 2, "local\' > "$PROOF_DIR/rank-2"; exit; }'
        ),
    ),
    Fault(
        "half a binding.json",
        "not measured",
        (),
        ("binding.json cannot be read",),
        replaced(RENAME, f'&& echo \'[{{"rank": 0,\' >"$RUN_DIR/.binding.json" {RENAME}'),
    ),
    Fault(
        "cores of a task lost under torchrun",
        "differs",
        tuple(range(8)),
        ("Ranks 0-7 differ.", "(only 1 of 56)"),
        replaced("export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK", "unset SRUN_CPUS_PER_TASK"),
        spec=where_job(launcher="torchrun", ranks=8),
    ),
)


def test_each_fault_is_found_and_named_by_its_rank(proving: Proving) -> None:
    sent = [proving.send(fault.spec, fault.script, fault.probe) for fault in FAULTS]
    for fault, run in zip(FAULTS, proving.finish(sent), strict=True):
        log = proving.log(run)
        assert run.state is fault.state, f"{fault.name}: {log}"
        found = proving.runs.proof(run)
        named = tuple(row.rank for row in found.rows if not row.ok)
        assert (found.kind, named) == (fault.kind, fault.wrong), f"{fault.name}: {found}"
        shown = " ".join(show.page_text(show.gather(proving.runs, run.id), 0.0, 80).split())
        for words in fault.says:
            assert words in found.sentence, f"{fault.name}: {found.sentence}"
            assert words in shown, f"{fault.name}: {shown}"
        if fault.why:
            assert proving.runs.why(run.id)[0].id == fault.why


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cores", "kind", "says"),
    [
        # What `--numa-binding=exclusive` gives; CPU torch cannot, so that taskset does it here.
        ("49-55 57-63 17-23 25-31", "proved", "have the cores of their own NUMA domain"),
        ("49-55 57-63 1-7 25-31", "differs", "Rank 2 on nid00500"),
        ("49-55 57-63 17-23 17-23,25", "differs", "it shares cores with rank 2"),
    ],
)
def test_torchruns_numa_binding_is_proved_by_domain(
    proving: Proving, cores: str, kind: str, says: str
) -> None:
    bound = in_probe(f"set -- {cores}; shift $LOCAL_RANK; taskset -cp $1 $$ >/dev/null")
    unbound = replaced(" --numa-binding=exclusive", "")
    run = proving.send(where_job(launcher="torchrun", ranks=4, site="numa"), unbound, bound)
    [run] = proving.finish([run])
    assert run.state is State.DONE, proving.log(run)
    found = proving.runs.proof(run)
    assert found.kind == kind and says in found.sentence, found
