"""Rules about a model's size, against the memory of a GPU."""

from collections.abc import Iterator
from dataclasses import dataclass

from lumitui.app.knowledge.model.job import Job
from lumitui.app.knowledge.model.source_position import Position
from lumitui.app.knowledge.program.models import parameters, states_gib
from lumitui.app.knowledge.program.step_program import Run, runs
from lumitui.app.knowledge.rule import Hit, Rule, rule
from lumitui.remote.site.profile import Site

_ZERO = "arXiv 1910.02054 (ZeRO), section 3; huggingface.co, the models' cards"
_OPTIONS = ("model_name_or_path", "model_name", "model", "model_id", "base_model", "pretrained")
_SPARING = (
    "get_peft_model",
    "LoraConfig",
    "BitsAndBytesConfig",
    "fully_shard",
    "FullyShardedDataParallel",
    "FSDPStrategy",
    "DeepSpeedStrategy",
    "parallelize_module",
    "Adafactor",
    "SGD",
)
_SMALL = 0.1  # of a GPU's memory: splitting a model that takes less only costs messages


@dataclass(frozen=True)
class _Model:
    name: str
    billions: float
    at: Position


def _model(run: Run) -> _Model | None:
    """Return the one model whose size is known by its name."""
    found: list[_Model] = []
    for name in _OPTIONS:
        given = run.given(name)
        if given and given.value and (size := parameters(given.value)):
            found.append(_Model(given.value, size, given.at))
    for _program, call in run.calls("from_pretrained"):
        if not call.name.rpartition(".")[0].endswith(
            ("ForCausalLM", "Model", "ConditionalGeneration")
        ):
            continue
        value = run.value(call.get("pretrained_model_name_or_path", 0))
        if isinstance(value, str) and (size := parameters(value)):
            found.append(_Model(value, size, call.at))
    return max(found, key=lambda model: model.billions) if found else None


def _trains_all(run: Run) -> bool:
    """Return whether all weights are trained with Adam, as far as the text shows."""
    sparing = run.has(*_SPARING) or run.uses("peft", "bitsandbytes")
    sparing = sparing or any("lora" in word.known.lower() for word in run.step.arguments)
    sparing = sparing or any(
        run.given(name) for name in ("use_peft", "peft", "lora", "fsdp", "optim")
    )
    sparing = sparing or any(
        call.get(name) is not None
        for _program, call in run.calls("TrainingArguments", "SFTConfig", "from_pretrained")
        for name in ("optim", "fsdp", "load_in_4bit", "load_in_8bit", "device_map", "deepspeed")
        if not (name == "deepspeed" and run.configs)
    )
    adam = run.trainer or run.has("Adam", "AdamW")
    return adam and not sparing and run.closed


@rule(
    "model-too-large",
    "error",
    "a model whose training does not fit into a GPU's memory",
    why="Weights, gradients and Adam's states take 16 bytes for each parameter, before any "
    "activation. ZeRO and FSDP split them over the ranks, DDP does not.",
    source=_ZERO,
)
def _too_large(job: Job, site: Site) -> Iterator[Hit]:
    if site.node.on_cpu:
        return
    for run in runs(job):
        model = _model(run)
        # accelerate's own file may ask for FSDP or ZeRO, and is not read.
        elsewhere = run.step.launcher == "accelerate" or run.uses("accelerate")
        if model is None or not _trains_all(run) or run.lightning or elsewhere:
            continue
        stage, offloaded = 0, False
        if run.configs:
            given = run.configs[0].stage
            if given == "auto" or run.configs[0].offload_param:
                continue
            stage = given or 0
            offloaded = run.configs[0].offload_optimizer is not None
        elif run.uses("deepspeed") or run.given("deepspeed"):
            continue  # its configuration is not at hand
        ranks = run.world or 1
        need = states_gib(
            model.billions, stage, ranks, optimizer_on_cpu=offloaded, all_in_16=_is_in_16(run)
        )
        have = site.node.gpu_memory_gib
        if need > have:
            how = f"ZeRO stage {stage} on {ranks} ranks" if stage else "a whole copy on each GPU"
            yield Hit(
                f"{model.name} has {model.billions:g} billion parameters: with Adam and {how}, "
                f"they take {need:,.0f} GiB of each GPU's {have} GiB.",
                _cure(model, ranks, have),
                model.at,
            )


def _is_in_16(run: Run) -> bool:
    """Return whether the weights themselves have 16 bits, so that Adam's states have, too."""
    loaded = any(
        call.get("torch_dtype") or call.get("dtype")
        for _program, call in run.calls("from_pretrained")
    )
    return loaded or run.has("half", "bfloat16") or run.given("torch_dtype", "dtype") is not None


def _cure(model: _Model, ranks: int, have: int) -> str:
    if ranks > 1 and states_gib(model.billions, 3, ranks) < 0.8 * have:
        return f"Split it over the {ranks} ranks with ZeRO stage 3 or FSDP, or train a LoRA."
    return "Take more GPUs with ZeRO stage 3 or FSDP, offload the optimizer, or train a LoRA."


@rule(
    "stage-above-need",
    "note",
    "a sharded model that fits into one GPU easily",
    why="ZeRO stage 3 sends the weights to all ranks in every forward and backward pass: half as "
    "much again as DDP sends.",
    source="arXiv 1910.02054 (ZeRO), section 7: communication of the stages",
)
def _above_need(job: Job, site: Site) -> Iterator[Hit]:
    if site.node.on_cpu:
        return
    for run in runs(job):
        model = _model(run)
        if model is None or not run.configs or run.configs[0].stage != 3:
            continue
        whole = states_gib(model.billions, 0, 1)
        if whole < _SMALL * site.node.gpu_memory_gib:
            yield Hit(
                f"{model.name} takes {whole:.1f} GiB with Adam, and a GPU has "
                f"{site.node.gpu_memory_gib}: ZeRO stage 3 sends its weights round for nothing.",
                'Write "stage": 1.',
                run.configs[0].at("zero_optimization", "stage"),
            )


RULES: tuple[Rule, ...] = (_too_large, _above_need)
"""Every rule of this subject."""
