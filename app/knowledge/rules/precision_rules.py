"""Rules about numbers of 8 and 16 bits, against what the GPUs and the image compute well."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from lumitui.app.knowledge.program.step_program import StepProgram, launched, runs
from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.remote.site.node import Precision
from lumitui.remote.site.profile import Site
from lumitui.remote.site.source_position import Position

_TRUE = (None, "True", "true", "1", "yes")


@dataclass(frozen=True)
class _Use:
    """A place that chooses a precision."""

    precision: Precision
    words: str
    at: Position
    by: Literal["argument", "autocast", "trainer", "config", "fp8", "switch"]


def _uses(run: StepProgram) -> Iterator[_Use]:
    """Yield where a run chooses a precision, on its command line, in its text or its config."""
    yield from _arguments(run)
    yield from _calls(run)
    for config in run.configs:
        if config.fp16 is True:
            yield _Use("fp16", "fp16.enabled", config.at("fp16", "enabled"), "config")
        if config.bf16 is True:
            yield _Use("bf16", "bf16.enabled", config.at("bf16", "enabled"), "config")
    for program in run.files:
        for one in program.settings:
            if one.target.endswith("allow_tf32") and one.value.value is True:
                yield _Use("tf32", program.file, one.at, "switch")


def _arguments(run: StepProgram) -> Iterator[_Use]:
    for name in ("fp16", "bf16", "tf32"):
        given = run.given(name)
        if given and given.value in _TRUE:
            yield _Use(name, f"--{name}", given.at, "argument")
    for name in ("mixed_precision", "precision", "dtype", "torch_dtype"):
        given = run.given(name)
        if given and given.value and (found := _named(given.value)):
            yield _Use(found, f"--{name}={given.value}", given.at, "argument")
    launched = run.step.launcher_options.get("mixed-precision", "mixed_precision")
    if run.step.launcher == "accelerate" and launched and (found := _named(launched.value or "")):
        yield _Use(found, f"--mixed_precision={launched.value}", launched.at, "argument")


def _calls(run: StepProgram) -> Iterator[_Use]:
    for _program, call in run.calls("TrainingArguments", "Seq2SeqTrainingArguments", "SFTConfig"):
        for name in ("fp16", "bf16", "tf32"):
            if call.is_true(name):
                yield _Use(name, f"{name}=True", call.at, "trainer")
    for _program, call in run.calls("autocast", "Trainer", "Accelerator", "Fabric"):
        if call.last == "Trainer" and not run.lightning:
            continue
        for one in call.arguments:
            known = run.value(one)
            text = known if isinstance(known, str) else one.text
            wanted = one.name in ("dtype", "precision", "mixed_precision") or not one.name
            if wanted and (found := _named(text)):
                yield _Use(found, f"{call.last}({text})", call.at, "autocast")
    for _program, call in run.calls("fp8_autocast", "convert_to_float8_training"):
        yield _Use("fp8", f"{call.last}(…)", call.at, "fp8")


def _named(text: str) -> Precision | None:
    """Return the precision that a value names: `torch.bfloat16`, `bf16-mixed`, `16-mixed`."""
    lowered = text.lower()
    if "bf16" in lowered or "bfloat16" in lowered:
        return "bf16"
    if "fp8" in lowered or "float8" in lowered:
        return "fp8"
    plain = re.fullmatch(r"(?:torch\.)?(?:fp16|float16|half|16(?:-mixed|-true)?)", lowered)
    return "fp16" if plain else None


@rule(
    "fp16-and-bf16",
    "error",
    "fp16 and bf16 at once",
    why="DeepSpeed ends with `bfloat16 and fp16 modes cannot be simultaneously enabled`, "
    "transformers with `At most one of fp16 and bf16 can be True`.",
    source="github.com/deepspeedai/DeepSpeed, deepspeed/runtime/config.py; transformers, "
    "training_args.py",
)
def _both(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for run in launched(job):
        uses = [use for use in _uses(run) if use.by != "autocast"]
        chosen = {use.precision: use for use in uses}
        if "fp16" in chosen and "bf16" in chosen:
            one, other = chosen["fp16"], chosen["bf16"]
            yield Hit(
                f"Both fp16 ({one.words}) and bf16 ({other.words}) are on: the program refuses it.",
                "Keep one of them.",
                max(one.at, other.at),
            )


@rule(
    "doubtful-precision",
    "warning",
    "a precision that the image computes badly",
    why="Some images compute one precision incorrectly, so training does not converge.",
    source="the site's profile, doubtful_precisions of the container's images",
)
def _doubtful(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        image = run.step.container.image if run.step.container else None
        if image is None:
            continue
        variants = [
            variant
            for container in site.containers.values()
            for variant in container.variants
            if re.search(variant.matches, image.known) and variant.doubtful_precisions
        ]
        for use in _uses(run):
            for variant in variants:
                if use.precision in variant.doubtful_precisions:
                    yield Hit(
                        f"{use.words} computes in {use.precision}, and in this image "
                        f"{variant.doubtful_precisions[use.precision]}.",
                        "Take bf16, or a later image.",
                        use.at,
                    )
