"""The work of a resubmission, compared with that of the run it repeats. Pure."""

from collections.abc import Mapping, Sequence

from lumitui.app.history.run import Run
from lumitui.app.job.launch import Launch
from lumitui.app.job.setting import (
    argument_value,
    batch_argument,
    rate_argument,
    without_arguments,
)
from lumitui.app.job.spec import JobSpec
from lumitui.app.launch.compose import global_batch_of
from lumitui.app.scale.scaling.measured import Training
from lumitui.app.scale.scaling.model import FASTEST

_OTHER = frozenset({
    "name", "nodes", "time", "account", "partition", "chain", "relaunch", "proof", "preflight",
    "fetch", "metrics", "ship_secrets", "follow_links", "secrets", "notify", "project",
    "signal", "hang", "after", "grid", "at_once", "then", "scale", "keep_compiled", "memory",
    "exclusive", "sbatch", "resume", "python", "activate",
})  # fmt: skip
"""Keys of a job file that do not change the training; `venv` is compared as requested."""
_STEPS = tuple(
    f"--{words.replace(' ', sign)}"
    for words in ("steps", "max steps", "num steps", "total steps", "train steps",
                  "max train steps", "iters", "max iters", "train iters", "num iters")
    for sign in "-_"
)  # fmt: skip
"""Options that end the training after a number of steps."""
_EPOCHS = ("--epochs", *(f"--{one}{sign}epochs" for one in ("num", "max") for sign in "-_"),
           "--num_train_epochs")  # fmt: skip
"""Options that end it after a number of passes over the data."""

_EPOCH_STEPS = tuple(
    f"--{word}{sign}per{sign}epoch" for word in ("steps", "iters", "batches") for sign in "-_"
)
"""Options that give an epoch a number of steps, whatever the data have."""


def steps_in(spec: JobSpec) -> int | None:
    """Return after how many steps the arguments of a job file end its training; None if unknown."""
    numbers = (_number(argument_value(spec.args, name)) for name in _STEPS)
    return next((int(number) for number in numbers if number), None)


def training_keys(spec: JobSpec) -> dict[str, object]:
    """Return the keys of a job file that change its training, without the arguments."""
    data = spec.model_dump(mode="json", exclude={*_OTHER, "args"}, exclude_defaults=True)
    if isinstance(venv := data.get("venv"), dict):
        venv.pop("sent", None)
    return data


def changes_of_work(run: Run, spec: JobSpec, *, resized: bool = False) -> tuple[str, ...]:
    """Return the keys in which `spec` trains otherwise than `run`, except in size and length.

    If it is `resized`, its batch may have followed the number of ranks.
    """
    old, new = training_keys(run.spec), training_keys(spec)
    if resized:
        old["gpus_per_node"] = new["gpus_per_node"] = None
    keys = [key for key in sorted(old | new) if old.get(key) != new.get(key)]
    names = [*_STEPS, *_EPOCHS]
    names += filter(None, (name(one) for name in (batch_argument, rate_argument)
                           for one in (run.spec, spec)))  # fmt: skip
    own, others = (without_arguments(one.args, names) for one in (run.spec, spec))
    batch = batch_argument(run.spec) or ""
    batches = [argument_value(one.args, batch) for one in (run.spec, spec)]
    differ = own != others or (batches[0] != batches[1] and not resized)
    return tuple(f"`{key}`" for key in (["args"] * differ + keys))


def work_ratio(
    run: Run, training: Training, launch: Launch, defaults: Mapping[str, str]
) -> float | None:
    """Return the samples that `launch` trains, as a multiple of those of `run`; None if unknown.

    Both do the same work except for its length. `defaults` are those of the program's options.
    """
    passes = training.planned // training.epoch if training.planned and training.epoch else ""
    known = {_EPOCHS[0]: str(passes), **defaults}
    steps, epochs = (_ratio(run.spec, launch.spec, names, known) for names in (_STEPS, _EPOCHS))
    before, after = run.layout.world_size, launch.layout.world_size
    own, batch = run.global_batch or training.global_batch, launch.global_batch
    if run.spec.scale != launch.spec.scale:  # compare as the new one counts
        same = run.spec.model_copy(update={"scale": launch.spec.scale})
        own = global_batch_of(same, run.layout) or own
    if batch is None and training.assumed and own:  # of each rank
        batch = own * after // before
    larger = batch / own if own and batch else 1.0 if before == after else 0.0
    if steps is None and _ratio(run.spec, launch.spec, _EPOCH_STEPS, known):
        return larger * (1.0 if epochs is None else epochs) or None
    if steps is None:
        return epochs or (1.0 if epochs is None and larger == 1 else None)
    if not steps or not larger or epochs == 0:
        return None
    trained, planned = training.samples, training.planned
    if trained and planned:  # whichever comes first
        return min(steps * larger, (epochs or 1.0) * planned / trained)
    return steps * larger if epochs is None or steps == epochs == larger == 1 else None


def _ratio(
    old: JobSpec, new: JobSpec, names: Sequence[str], defaults: Mapping[str, str]
) -> float | None:
    """Return how many times as long `new` trains; None without such options, 0 if unknown."""
    for name in names:
        texts = [argument_value(one.args, name) or defaults.get(name) for one in (old, new)]
        before, after = map(_number, texts)
        if before or after or texts[0] != texts[1]:
            return after / before if before else 0.0
    return None


def _number(text: str | None) -> float:
    """Return a positive number; 0 for others: `--max-steps -1` means no limit."""
    try:
        number = float(text or 0)
    except ValueError:
        return 0.0
    return number if 0 < number < FASTEST else 0.0
