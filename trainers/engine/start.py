"""Starting a training run: data, ranks, model, and the checkpoint to resume from.

In:  RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, RUN_DIR; see engine/ranks.py.
Out: $RUN_DIR/metrics.jsonl, see engine/reporting.py; $RUN_DIR/checkpoints/, see
     saving/checkpoint.py; $RUN_DIR/errors/rank-N.json of a rank that failed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace

import torch
import torch.distributed as dist
from torch import nn

from data.samples import Shape
from data.sets import open_data
from engine import exits, ranks
from engine.reporting import Reporter
from engine.speed import Figures
from engine.training import TASKS, LossGuard, StepWindow, Training
from models.table import MODELS, build, size
from monitor.heartbeat import HEART
from monitor.stop_request import STOP
from saving import checkpoint
from saving.files import Position, Settings, changes
from saving.saver import Saver
from strategies import Make, Setup


def run(
    args: argparse.Namespace, make: Make, train: Callable[[Training], None] = Training.train
) -> None:
    """Train from the beginning or the last checkpoint to the end, or until a stop request.

    `train` runs the epochs and ends with Training.finish.
    """
    me = ranks.read_ranks()
    if args.tf32:
        torch.set_float32_matmul_precision("high")
    takers = []
    if args.watch:
        from engine.watchers import Watchers

        takers = [Watchers(args.watch, me.run_dir).take]
    training = prepare(args, me, make)
    changed = begin(training)
    strategy = training.strategy
    report = Reporter(me.run_dir, me.rank, args.log_every, training.task.figure, takers)
    training.report = report
    report.start(
        training.device,
        strategy=strategy.name,
        model=args.model,
        parameters=size(strategy.module),
        world_size=me.world_size,
        global_batch=training.global_batch,
        accumulate=strategy.accumulate,
        optimizer=strategy.optimizer_name,
        lr=strategy.lr,
        epochs=args.epochs,
        train_samples=training.at.train_samples,
        first_step=training.at.step + 1,
        **training.figures.start(),
        **({"changed": changed} if changed else {}),
    )
    if changed:
        report.say(f"Changed since the checkpoint: {changed}.")
    train(training)
    gpu = [training.device.index] if training.device.type == "cuda" else None
    dist.barrier(device_ids=gpu)  # nccl warns if it must guess the device
    dist.destroy_process_group()


def prepare(args: argparse.Namespace, me: ranks.Ranks, make: Make) -> Training:
    """Load the data, join the other ranks and build the model, the same on every rank.

    Raises:
        UsageError: the data or the initial weights cannot be read, or the data is less than one
            global batch.
    """
    row = MODELS[args.model]
    device = ranks.join(me)
    data = ranks.by_all(me, lambda: open_data(args.data, shape=row.sample, limit=args.limit))
    task, places = TASKS[row.task], torch.arange(2) % len(data.train)
    inputs, targets = (each.to(device) for each in data.train.read(places))
    example = data.view()(inputs, places), targets
    strategy = make(
        Setup(args, me, device, lambda: _model(args, me, data.shape), task.loss, example)
    )
    count = len(data.train)
    checkpoints = checkpoint.Checkpoints(me.run_dir)
    training = Training(
        args,
        me,
        device,
        data,
        task,
        strategy,
        at=Position(args.model, strategy.optimizer_name, args.seed, count, me.world_size),
        guard=LossGuard(args.max_skipped),
        checkpoints=checkpoints,
        saver=Saver(me, checkpoints, background=args.save_in_background),
        window=StepWindow(args.log_every, device),
        figures=Figures.of(args.model, data.shape, me.world_size, device, strategy.precision),
    )
    checkpoints.settings = settings(training)
    if count < training.global_batch:
        of_a_rank = strategy.micro_batch * strategy.accumulate
        raise exits.UsageError(
            f"{count} training samples are fewer than one global batch of {of_a_rank} x "
            f"{me.world_size} ranks. Make a rank's batch smaller (--batch-size, or the batch of "
            "DeepSpeed's configuration) or use fewer ranks."
        )
    return training


def _model(args: argparse.Namespace, me: ranks.Ranks, shape: Shape) -> nn.Module:
    """Build the model with its initial weights, unless it resumes."""
    net = build(args.model, shape, args.seed)
    if args.init:
        from saving.weights import begin_with

        resumes = args.resume and checkpoint.Checkpoints(me.run_dir).newest_first()
        begin_with(net, args.init, weights=not resumes)
    return net


def settings(of: Training) -> Settings:
    """Return the settings that affect the losses, so that a resume can report changes."""
    found: dict[str, object] = {"global batch": of.global_batch}
    found |= {"lr": of.strategy.lr, "precision": of.strategy.precision}
    # DeepSpeed's settings are in its configuration.
    names = ("epochs", "schedule", "warmup_steps", "betas", "weight_decay", "decay", "clip")
    given = vars(of.args)
    found |= {name.replace("_", " "): given[name] for name in names if name in given}
    # As in a manifest: JSON has no tuples.
    return {name: list(one) if isinstance(one, tuple) else one for name, one in found.items()}


def begin(training: Training) -> str:
    """Take over the run folder from earlier attempts, and resume if requested.

    Returns the settings that differ from the checkpoint, in words.
    """
    me, checkpoints = training.me, training.checkpoints
    ranks.choose_threads()
    STOP.watch(me.run_dir, me.rank, checkpoints.is_followed)
    if trouble := HEART.start(me.rank, me.run_dir, ranks.gather):
        print(f"The log will not name a hung rank ({trouble}).", file=sys.stderr, flush=True)
    resumes = bool(training.args.resume)
    checkpoint.on_first_rank(me, lambda: checkpoints.take_over(resumes=resumes), me.run_dir)
    if resumes:
        return resume(training)
    if me.rank == 0 and (earlier := checkpoints.newest_first()):
        print(
            "This starts from the beginning. The checkpoints of an earlier training stay in "
            f"{checkpoints.folder}; the newest is {earlier[0].folder.name}. To continue it, pass "
            "--resume.",
            flush=True,
        )
    return ""


def resume(training: Training) -> str:
    """Resume from the newest complete checkpoint; return the changed settings in words.

    Raises:
        UsageError: the checkpoint is from another training run, or cannot be read.
    """
    checkpoints = training.checkpoints
    saved = checkpoint.newest_whole(checkpoints, training.me)
    checkpoints.continues(saved)
    if saved is None:
        return ""
    at = saved.read()
    training.at.check_continues(at)
    before, now = saved.settings(), checkpoints.settings
    if before.get("decay", "all") != now.get("decay", "all"):
        raise exits.UsageError(
            f"The checkpoint was made with --decay {before.get('decay', 'all')}, which orders "
            "the optimizer's state. Resume with the same."
        )
    checkpoints.best = saved.best()
    training.strategy.load(saved.folder, at.world_size)
    training.at = replace(at, world_size=training.me.world_size)
    training.saver.last = saved
    return changes(before, now)
