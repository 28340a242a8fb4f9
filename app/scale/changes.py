"""The before/after table of a resubmission: the differences between two launches. Pure."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lumitui.app.explain import run_phrases, words
from lumitui.app.follow.results.job_rows import differing_rows
from lumitui.app.job.fields.mapping_fields import Scale
from lumitui.app.job.launch import Launch
from lumitui.app.job.setting import argument_value, batch_argument, rate_argument, with_argument
from lumitui.app.job.spec import JobSpec
from lumitui.app.job.stop_lead import signal_of
from lumitui.app.knowledge.program.python_reader import read_python
from lumitui.app.launch.compose import global_batch_of
from lumitui.app.launch.deepspeed_batch import TRAIN, has_deepspeed, sent_config
from lumitui.app.launch.draft.printed_series import scaled_options
from lumitui.app.scale import learning_rate


@dataclass(frozen=True)
class PlanChange:
    """One line of the before/after table."""

    what: str
    before: str
    after: str

    @property
    def differs(self) -> bool:
        """Whether anything changed."""
        return self.before != self.after


def changes_between(before: Launch, after: Launch) -> tuple[PlanChange, ...]:
    """Return the before/after table of two launches, including rows that stay the same."""

    def row(what: str, read: Callable[[Launch], object]) -> PlanChange:
        return PlanChange(what, str(read(before)), str(read(after)))

    rows = [
        row("nodes", lambda launch: launch.layout.nodes),
        row("ranks", lambda launch: launch.layout.world_size),
        *([] if after.layout.on_cpu else [row("GPUs", _gpus)]),
        row("tasks per node", lambda launch: launch.layout.tasks_per_node),
        row("partition", lambda launch: launch.spec.partition),
        row("time limit", run_phrases.time_limit),
        row("global batch", lambda launch: launch.global_batch or "unknown"),
        _rate_change(before, after),
        row("arguments", _other_arguments),
        row("billed at most", lambda one: words.amount(one.price) if one.price.amount else 0),
    ]
    seldom = (row("stop signal", _signal), row("memory per rank", _memory))
    rows += [change for change in seldom if change.differs]
    rows += _config_changes(before, after)
    keys = {"signal", "nodes", "partition", "time", "chain", "args"}
    rows += [
        PlanChange(key, old, new)
        for key, (old, new) in differing_rows([before.spec, after.spec])
        if key not in keys and not key.startswith("-")  # shown in the row `arguments`
    ]
    return tuple(rows)


def with_unnamed(
    changes: Sequence[PlanChange], before: Launch, after: JobSpec, program: str
) -> tuple[PlanChange, ...]:
    """Return the changes, with the earlier batch and rate that only `after` has names for.

    An argument that was missing had the default of `program`.
    """
    spec, defaults = before.spec, option_defaults(program)
    spec = spec.model_copy(update={"scale": spec.scale or after.scale})
    for name in (batch_argument(spec), rate_argument(spec)):
        if name and argument_value(spec.args, name) is None and name in defaults:
            args = with_argument(spec.args, name, defaults[name])
            spec = spec.model_copy(update={"args": args})
    named = replace(before, spec=spec)
    known = {
        "global batch": str(global_batch_of(spec, before.layout) or "unknown"),
        "learning rate": _rates(named, _figure),
    }
    return tuple(
        replace(one, before=known[one.what])
        if one.before == "unknown" and one.what in known and one.after != "unknown"
        else one
        for one in changes
    )


def option_defaults(program: str) -> dict[str, str]:
    """Return the constant defaults of a program's options, by each of their names."""
    return {
        flag: str(one.default.value)
        for one in read_python(program, "program").options
        if one.default is not None and one.default.constant
        for flag in one.flags
    }


def change_effect(changes: Sequence[PlanChange]) -> str:
    """Return a sentence on the change of the global batch and the learning rate.

    It is "" if both are unknown and the ranks stay.
    """
    rows = {change.what: change for change in changes}
    batch, rate = rows["global batch"], rows["learning rate"]
    is_known = batch.after != "unknown"
    if not is_known:
        sentence = "lumitui does not know the batch size"
    elif batch.before == "unknown":
        sentence = f"Each step trains on {batch.after} samples; the run named no batch size"
    elif batch.differs:
        sentence = f"Each step trains on {batch.after} samples instead of {batch.before}"
    else:
        sentence = f"Each step still trains on {batch.after} samples"
    if not is_known and not (rows["ranks"].differs or rate.differs):
        return ""
    if rate.after == "unknown":
        return f"{sentence}." if is_known else f"{sentence} or the learning rate."
    if rate.before == "unknown":
        return f"{sentence}; the learning rate {rate.after} is not rescaled."
    if rate.differs:
        return f"{sentence}; the learning rate changes from {rate.before} to {rate.after}."
    return f"{sentence}; the learning rate stays {rate.after}."


_KEPT = {
    "global": "keeps the global batch (`keep: global`)",
    "per_gpu": "keeps the samples of each rank (`keep: per_gpu`)",
}
_RATE = {
    "none": "keeps the learning rate (`rule: none`)",
    "linear": "multiplies the learning rate by the batch's factor (`rule: linear`)",
    "sqrt": "multiplies the learning rate by the square root of the batch's factor (`rule: sqrt`)",
}


def policy(spec: JobSpec) -> str:
    """Return a sentence on what `scale:` does to batch and learning rate on another size."""
    scale = spec.scale or Scale()
    return f"On another size, `scale:` {_KEPT[scale.batch.keep]} and {_RATE[scale.lr.rule]}."


def naming(program: str, spec: JobSpec) -> tuple[str, ...]:
    """Return settings that name the arguments of a program's batch and rate, if none is known.

    An argument that is missing from `args:` is set to the program's default.
    """
    if batch_argument(spec) or rate_argument(spec) or has_deepspeed(spec):
        return ()
    options = {one.flags[-1]: one for one in read_python(program, "program").options}
    scale, values = list[str](), list[str]()
    for key, name in scaled_options(list(options)).items():
        flags, default = options[name].flags, options[name].default
        given = next((flag for flag in flags if argument_value(spec.args, flag)), None)
        of_all = ", arg_is: global" if "global" in name else ""
        scale.append(f"{key}: {{arg: {given or name}{of_all}}}")
        if given is None and default is not None and default.constant:
            values.append(f"{name}={default.value}")
    return (f"scale={{{', '.join(scale)}}}", *values) if scale else ()


def _signal(launch: Launch) -> str:
    """Return the stop signal with its seconds before the time limit."""
    name, _, seconds = (signal_of(launch.spec) or "").partition("@")
    return f"{name}, {seconds} s before the limit" if name else "none"


def _memory(launch: Launch) -> str:
    return words.rank_memory(launch.memory) if launch.memory else "not known"


def _gpus(launch: Launch) -> int:
    return launch.layout.nodes * launch.layout.gpus_per_node


def _other_arguments(launch: Launch) -> str:
    """Return the arguments as sent; a shortened learning rate ends with an ellipsis."""
    args, name = launch.spec.args, rate_argument(launch.spec)
    value = argument_value(args, name) if name else None
    short = _figure(value)
    if not name or not learning_rate.is_number(value) or float(short) == float(str(value)):
        return _line(args)
    return _line(with_argument(args, name, f"{short}…"))


def _line(args: tuple[str, ...]) -> str:
    return " ".join(word or "''" for word in args)


def _figure(rate: object) -> str:
    """Return a learning rate in four significant digits, if it is a number."""
    return f"{float(str(rate)):.4g}" if learning_rate.is_number(rate) else str(rate)


def _rate_change(before: Launch, after: Launch) -> PlanChange:
    """Return the row of the learning rates, in full if four digits would hide a difference."""
    short = PlanChange("learning rate", _rates(before, _figure), _rates(after, _figure))
    exact = PlanChange("learning rate", _rates(before, str), _rates(after, str))
    return short if short.differs == exact.differs else exact


def _rates(launch: Launch, text_of: Callable[[object], str]) -> str:
    """Return the learning rates in a launch's arguments and its DeepSpeed configuration."""
    args = launch.spec.args
    # `scale:` may name only the batch: what the arguments show is known all the same.
    like = scaled_options([word.partition("=")[0] for word in args])
    name = rate_argument(launch.spec) or like.get("lr")
    value = argument_value(args, name) if name else None
    rates = [text_of(value)] if value else []
    rates += [
        text_of(rate) if key == "lr" else f"{key} {text_of(rate)}"
        for key, rate in learning_rate.rates(sent_config(launch)).items()
    ]
    return ", ".join(rates) or "unknown"


def _config_changes(before: Launch, after: Launch) -> list[PlanChange]:
    """Return the fields in which two launches' DeepSpeed configurations differ.

    Omits the global batch and the learning rates, which have their own rows.
    """
    old, new = sent_config(before), sent_config(after)
    if not old or not new:
        return []
    names = {TRAIN} | learning_rate.rates(old).keys() | learning_rate.rates(new).keys()
    one, other = dict(_fields(old)), dict(_fields(new))
    return [
        PlanChange(".".join(path), one.get(path, "none"), other.get(path, "none"))
        for path in dict.fromkeys([*one, *other])
        if path[-1] not in names and one.get(path) != other.get(path)
    ]


def _fields(value: object, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], str]]:
    if not isinstance(value, dict):
        return [(path, value if isinstance(value, str) else json.dumps(value))]
    return [row for key, inner in value.items() for row in _fields(inner, (*path, str(key)))]
