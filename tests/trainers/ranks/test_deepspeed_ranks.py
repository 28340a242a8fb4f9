"""deepspeed_zero.py on several real ranks: losses, resuming, kills, wrong configurations."""

import json
import signal
from pathlib import Path

import pytest

from tests.support.places import TRAINERS
from tests.support.trainers.ranks import (
    DIVERGED,
    STOPPED_EARLY,
    checkpoints,
    held_at,
    losses,
    ranks,
    reported,
    train,
    train_alone,
)

pytestmark = pytest.mark.usefixtures("needs_torch", "needs_deepspeed")

ZERO = ("deepspeed_zero.py", "--model", "vit", "--limit", "512", "--epochs", "2",
        "--save-every", "5", "--eval", "end", "--log-every", "1")  # fmt: skip


@pytest.mark.slow
def test_deepspeed_trains_and_resumes_with_the_same_losses(tmp_path: Path) -> None:
    # Dropout in this model: a step's random numbers have to be the same after a resume.
    train(tmp_path / "whole", 2, *ZERO)
    expected = losses(tmp_path / "whole")
    assert list(expected) == list(range(1, 17))
    assert expected[16] < 0.9 * expected[1]
    start = reported(tmp_path / "whole")[0]
    assert start.items() >= {"strategy": "zero1", "global_batch": 64, "world_size": 2}.items()
    tmp = tmp_path / "whole" / "tmp"
    assert not [*tmp.glob("deepspeed-*"), *tmp.rglob("*.so")]  # nothing compiled, nothing left

    parted = tmp_path / "parted"
    with ranks(parted, 2, *ZERO, before=held_at(parted, 9)) as job:
        job.wait_for_step(9)
        job.processes[1].send_signal(signal.SIGUSR1)
        job.release()
        assert job.wait() == [STOPPED_EARLY] * 2, job.output()
    assert max(losses(parted)) == 10
    assert checkpoints(parted) == ["start-0001-step-00000005", "start-0001-step-00000010"]
    # A part that was cut is named, and the checkpoint before it is used.
    part = next((parted / "checkpoints" / "start-0001-step-00000010").glob("*pp_rank_1_*"))
    part.write_bytes(part.read_bytes()[:-100])
    assert (
        "step-00000010 is damaged: zero_pp_rank_1_" in train(parted, 2, *ZERO, "--resume").output()
    )
    assert losses(parted) == expected  # to the last digit
    assert len(checkpoints(parted)) == 2


def test_a_deepspeed_that_saves_otherwise_is_refused_at_the_start(tmp_path: Path) -> None:
    other = "import deepspeed\ndel deepspeed.DeepSpeedEngine._copy_recovery_script\n"
    code, output = train_alone(tmp_path, *ZERO, before=other, DS_ACCELERATOR="cpu")
    assert code == 2 and "has no _copy_recovery_script, so its checkpoints" in output, output
    assert "Traceback" not in output and not losses(tmp_path)


@pytest.mark.slow
def test_deepspeed_trains_alone_and_goes_on_with_an_edited_rate(tmp_path: Path) -> None:
    words = (*ZERO, "--seed", "1234567890")
    assert train_alone(tmp_path, *words, "--steps", "3")[0] == 0
    assert list(losses(tmp_path)) == [1, 2, 3]
    # A rate that was edited since counts; the optimizer's state has the old one in it.
    config = json.loads((TRAINERS / "ds_config.json").read_text())
    config["optimizer"]["params"]["lr"] = 0.0005
    (tmp_path / "ds.json").write_text(json.dumps(config))
    edited = ("--resume", "--deepspeed_config", str(tmp_path / "ds.json"))
    assert train_alone(tmp_path, *words, "--steps", "4", *edited)[0] == 0
    assert [line["lr"] for line in reported(tmp_path) if "loss" in line] == [0.002] * 3 + [0.0005]
    # A rate that ruins the weights ends the training, and no checkpoint is made of them.
    kept = checkpoints(tmp_path)
    config["optimizer"]["params"]["lr"] = 1e30
    (tmp_path / "ds.json").write_text(json.dumps(config))
    code, output = train_alone(tmp_path, *words, "--save-every", "1", *edited)
    assert code == DIVERGED, output
    assert "not a finite number in the last 4 steps, up to step 9" in output
    assert checkpoints(tmp_path) == kept[-1:]


KILLED_IN_SAVE = """
import os, signal
from pathlib import Path
import deepspeed

real, calls = deepspeed.DeepSpeedEngine.save_checkpoint, []

def save(engine, folder, tag, **options):
    calls.append(tag)
    if len(calls) == {fatal}:
        for file in Path(folder, tag).glob("*.pt"):
            file.write_bytes(b"")  # opened anew, and not a byte is written
        os.kill(os.getpid(), signal.SIGKILL)
    return real(engine, folder, tag=tag, **options)

deepspeed.DeepSpeedEngine.save_checkpoint = save
"""


@pytest.mark.slow
def test_no_kill_while_deepspeed_saves_costs_the_last_checkpoint(tmp_path: Path) -> None:
    def killed_in_save(number: int) -> int:
        words = ("--limit", "128", "--epochs", "1", "--save-every", "2", "--eval", "never")
        before = KILLED_IN_SAVE.format(fatal=number)
        return train_alone(tmp_path, ZERO[0], *words, before=before)[0]

    folder = tmp_path / "checkpoints"
    first = "start-0001-step-00000002"
    # The last step is saved when it is due, and at the end only its position is written anew.
    assert killed_in_save(2) == 0
    assert checkpoints(tmp_path) == [first]
    kept = {path: path.read_bytes() for path in sorted((folder / first).glob("*"))}
    position = json.loads(kept[folder / first / "manifest.json"])["content"]["position"]
    assert (position["step"], position["epoch"], position["samples"]) == (2, 1, 0)
    # Begun anew in the same folder, the same step does not go over it either.
    assert killed_in_save(1) == -signal.SIGKILL
    assert {path: path.read_bytes() for path in kept} == kept
    assert killed_in_save(2) == 0
    assert checkpoints(tmp_path) == [first, "start-0003-step-00000002"]


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        pytest.param('{"train_batch_size": 63}', "63 != 31 * 1 * 2", marks=pytest.mark.slow),
        pytest.param("{train_batch_size: ", "DeepSpeed refuses", marks=pytest.mark.slow),
        (None, "There is no DeepSpeed configuration"),
    ],
)
def test_a_wrong_configuration_gives_a_sentence(
    tmp_path: Path, config: str | None, complaint: str
) -> None:
    path = tmp_path / "ds.json"
    if config:
        path.write_text(config)
    with ranks(tmp_path, 2, *ZERO, "--deepspeed_config", str(path)) as job:
        assert job.wait() == [2, 2], job.output()
    assert complaint in job.output()
    assert "Traceback" not in job.output()


SAYS_ITS_GPU = """
import os, deepspeed
real = deepspeed.initialize
def initialize(args, **given):
    print("gpu", args.local_rank, os.environ["LOCAL_RANK"])
    return real(args=args, **given)
deepspeed.initialize = initialize
"""


@pytest.mark.slow
def test_deepspeed_takes_the_device_that_was_chosen_not_the_local_ranks(tmp_path: Path) -> None:
    # A launcher that shows each rank its own GPU only: local rank 1's is number 0.
    job = train(tmp_path, 2, *ZERO, "--steps", "1", "--eval", "never", before=SAYS_ITS_GPU)
    assert job.output().splitlines().count("gpu 0 0") == 2
