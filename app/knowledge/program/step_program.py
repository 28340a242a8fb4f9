"""The program of a job's step: Python file, options, modules and configurations."""

import difflib
import posixpath
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

from lumitui.app.knowledge.program.deepspeed_config import Config, is_config, read_config
from lumitui.app.knowledge.program.program_facts import (
    Assignment,
    Call,
    Expression,
    Fault,
    PythonFile,
    Value,
)
from lumitui.app.knowledge.program.python_reader import read_python
from lumitui.app.knowledge.script_job import GPU_LISTS, JobStep, ScriptJob
from lumitui.remote.site.source_position import Position

_NAMES = (
    "accelerate apex bitsandbytes bs4 cv2 datasets deepspeed diffusers einops evaluate fire "
    "flash_attn h5py horovod huggingface_hub hydra jax jsonargparse lightning matplotlib mlflow "
    "mpi4py nltk numpy omegaconf pandas peft PIL psutil pyarrow pydantic pytorch_lightning "
    "requests safetensors scipy sentencepiece sklearn tensorboard tensorboardX tensorflow "
    "tokenizers torch torchaudio torchdata torchmetrics torchvision tqdm transformers trl typer "
    "wandb webdataset yaml"
)
_LIBRARIES = frozenset(_NAMES.split())
"""Installed packages whose effect on ranks and checkpoints the rules know."""
_RANKED = ("torch.distributed", "accelerate", "deepspeed", "horovod", "lightning",
           "pytorch_lightning", "mpi4py", "jax", "tensorflow", "trl", "submitit")  # fmt: skip
"""Packages that handle ranks."""
_read = lru_cache(maxsize=64)(read_python)
_config = lru_cache(maxsize=64)(read_config)


@dataclass(frozen=True)
class Given:
    """An argument on the program's command line."""

    value: str | None
    """None if given without a value."""
    at: Position


@dataclass(frozen=True)
class StepProgram:
    """A step that runs an available Python file."""

    job: ScriptJob
    step: JobStep
    program: PythonFile
    modules: tuple[PythonFile, ...]
    """The available modules that it imports from its own folder."""
    configs: tuple[Config, ...]
    """DeepSpeed configurations that it reads."""

    @cached_property
    def files(self) -> tuple[PythonFile, ...]:
        """The program and its modules, except those that Python cannot parse."""
        return tuple(one for one in (self.program, *self.modules) if one.fault is None)

    @cached_property
    def closed(self) -> bool:
        """Whether all imported modules of the project are available."""
        known = {posixpath.normpath(module.file) for module in self.modules}
        for program in self.files:
            for name in program.imports:
                root = name.partition(".")[0]
                if root in _LIBRARIES or root in sys.stdlib_module_names:
                    continue
                if known.isdisjoint(_module_files(program.file, name)):
                    return False
        whole = all(program.whole for program in self.files)
        return whole and all(module.fault is None for module in self.modules)

    def calls(self, *names: str) -> Iterator[tuple[PythonFile, Call]]:
        """Yield the calls of these names, each with its file."""
        return ((program, call) for program in self.files for call in program.named(*names))

    def has(self, *names: str) -> bool:
        """Return whether any of its files calls one of these."""
        return any(program.has(*names) for program in self.files)

    def uses(self, *packages: str) -> bool:
        """Return whether any of its files imports one of these."""
        return any(program.imports_any(*packages) for program in self.files)

    def environment(self, *names: str) -> Iterator[Assignment]:
        """Yield the assignments to these environment variables in its files."""
        return (one for program in self.files for one in program.environment(*names))

    @cached_property
    def lightning(self) -> bool:
        """Whether PyTorch Lightning runs its ranks."""
        return self.uses("lightning", "pytorch_lightning")

    @cached_property
    def trainer(self) -> bool:
        """Whether the Trainer of transformers (or of trl, which extends it) runs its ranks."""
        names = ("Trainer", "Seq2SeqTrainer", "SFTTrainer", "DPOTrainer", "GRPOTrainer")
        return self.uses("transformers", "trl") and self.has(*names) and not self.lightning

    @cached_property
    def by_hand(self) -> bool:
        """Whether it creates its process group and wraps its model itself, without a framework."""
        framework = self.lightning or self.trainer
        framework = framework or self.uses("accelerate", "horovod", "torch.distributed.rpc")
        return not framework and self.has("init_process_group", "DistributedDataParallel")

    @cached_property
    def knows_ranks(self) -> bool:
        """Whether anything in it reads a rank, or imports a module that does."""
        words = {name for one in self.files for name in one.reads | one.asks}
        ranks = any("RANK" in word or word.startswith(("SLURM_", "OMPI_")) for word in words)
        calls = any("distributed" in call.name for one in self.files for call in one.calls)
        calls = calls or self.has("spawn")
        given = any(option.name == "local_rank" for one in self.files for option in one.options)
        return self.uses(*_RANKED) or ranks or calls or given or self.trainer or not self.closed

    @cached_property
    def world(self) -> int:
        """The number of ranks; 0 if unknown."""
        return self.step.rank.world_size or 0

    @cached_property
    def nodes(self) -> int:
        """The number of nodes on which srun starts it; without srun, the job's."""
        return (self.step.srun and self.step.srun.number("nodes")) or self.job.nodes

    def given(self, *names: str) -> Given | None:
        """Return the last of these arguments on the command line; `-` and `_` are the same."""
        words, found = self.step.arguments, None
        for number, word in enumerate(words):
            flag, equals, value = word.known.partition("=")
            if flag.startswith("-") and flag.lstrip("-").replace("-", "_") in names:
                following = words[number + 1].known if number + 1 < len(words) else "-"
                after = None if following.startswith("-") else following
                found = Given(value if equals else after, word.at)
        return found

    def value(self, expression: Expression | None) -> Value:
        """Return a known value, from the text itself or from the program's option.

        None may also mean unknown.
        """
        if expression is None:
            return None
        if expression.constant:
            return expression.value
        _object, dot, name = expression.text.rpartition(".")
        if any(one.target.endswith(f".{name}") for each in self.files for one in each.settings):
            return None  # the program changes the option's value
        for program in self.files:
            for option in program.options:
                if dot and option.name == name:
                    names = [flag.lstrip("-").replace("-", "_") for flag in option.flags]
                    if given := self.given(*names):
                        return _plain(given.value)
                    return option.default.value if option.default else None
        return None

    def number(self, expression: Expression | None) -> int | None:
        """Return the whole number if it is known."""
        value = self.value(expression)
        return value if type(value) is int else None


def runs(job: ScriptJob) -> Iterator[StepProgram]:
    """Yield the available main programs of a job."""
    for step in job.training:
        if step.program is None or not step.python:
            continue
        name = step.program.known
        module = name.replace(".", "/")
        paths = (name, f"{module}.py", f"{module}/__main__.py")
        file = next((found for path in paths if (found := _at_hand(job, path))), None)
        if file is None:
            continue
        program = _read(job.files[file], file)
        modules = tuple(_modules(job, program, {file}))
        yield StepProgram(
            job, step, program, modules, tuple(_configs(job, step, (program, *modules)))
        )


_SEVERAL_GPUS = re.compile(
    r"(?i)device_(count|map|ids)|spawn|multiproc|subproc|popen|parallel|cuda:[1-9]|pmap|jax|vllm|mpi"
    r"|\bray\b|distribut|accelerat|trainer|lightning|set_device|horovod|_rank|visible_dev|mirrored"
    r"|os\.exec|os\.system|num_gpus|n_gpu"
)
"""Words of a program that uses several GPUs, or starts processes that do."""
_GPU_WORDS = re.compile(r"(?i)gpu|device|parallel|proc|cuda|strategy|vllm|ray\b|run\b|launch|[\[{]")
"""Words of a command line that may make a program use several GPUs."""


def one_gpu_of(job: ScriptJob, step: JobStep) -> Literal["yes", "perhaps", "no"]:
    """Return whether a step is a lone process that leaves all GPUs but one idle.

    `perhaps`: nothing speaks against it, but not all of the program's text is available.
    """
    alone = step.rank.world_size == 1 and step.launcher in ("srun", "plain") and step.python
    words = (step.program, *step.arguments)
    told = any(word and _GPU_WORDS.search(word.known) for word in words)
    own = step.srun is not None and any("gpu" in f"{one.name}{one.value}" for one in step.srun.all)
    beside = step.background or step.repeated or len(job.training) > 1
    if not alone or told or own or beside or any(job.settings(*GPU_LISTS)):
        return "no"
    run = next((run for run in runs(job) if run.step is step), None)
    if run and any(_SEVERAL_GPUS.search(job.files[one.file]) for one in run.files):
        return "no"
    return "yes" if run and run.closed else "perhaps"


def configurations(job: ScriptJob) -> Iterator[tuple[StepProgram, Config]]:
    """Yield the readable DeepSpeed configurations of a job, each with its reader."""
    for run in launched(job):
        for config in run.configs:
            if config.fault is None:
                yield run, config


def launched(job: ScriptJob) -> Iterator[StepProgram]:
    """Yield all main programs of a job, including unavailable ones.

    For unavailable ones, only the arguments and the files they name are known; `closed` is False.
    """
    yield from runs(job)
    for step in job.training:
        if step.program is not None and _at_hand(job, step.program.known) is None:
            fault = Fault("The file is not available.", step.program.at)
            program = PythonFile(step.program.known, fault)
            yield StepProgram(job, step, program, (program,), tuple(_configs(job, step, ())))


def _at_hand(job: ScriptJob, name: str) -> str | None:
    """Return the key in `files` of a path that the job names, or None."""
    plain = posixpath.normpath(name)
    for file in job.files:
        if file == name or posixpath.normpath(file) == plain:
            return file
    below = [file for file in job.files if file.endswith(f"/{plain}")]  # after a `cd`
    return below[0] if len(below) == 1 else None


def _module_files(file: str, name: str) -> Iterator[str]:
    """Yield the possible paths of a module of this name beside `file`."""
    folder = posixpath.dirname(posixpath.normpath(file))
    path = name.lstrip(".").replace(".", "/")
    for end in (".py", "/__init__.py"):
        yield posixpath.join(folder, f"{path}{end}")
    if "/" in path:
        yield posixpath.join(folder, f"{path.rpartition('/')[0]}.py")


def _modules(job: ScriptJob, program: PythonFile, seen: set[str]) -> Iterator[PythonFile]:
    for name in sorted(program.imports):
        for path in _module_files(program.file, name):
            file = _at_hand(job, path)
            if file is not None and file not in seen:
                seen.add(file)
                module = _read(job.files[file], file)
                yield module
                yield from _modules(job, module, seen)


def _configs(job: ScriptJob, step: JobStep, programs: tuple[PythonFile, ...]) -> Iterator[Config]:
    named = [word.known.rpartition("=")[2] for word in step.arguments]
    named += [text.value for program in programs for text in program.texts]
    seen: set[str] = set()
    for name in named:
        if not name.endswith((".json", ".hjson", ".conf")):
            continue
        file = _at_hand(job, name)
        if file is not None and file not in seen and is_config(job.files[file]):
            seen.add(file)
            yield _config(job.files[file], file)
    for program in programs:
        for text in program.dictionaries:
            if is_config(text.value):
                yield _config(text.value, program.file, text.at)


def _plain(text: str | None) -> Value:
    """Return the value of an argument as the program receives it; None if unknown."""
    if text is None or "$" in text:
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


STAGE_IT = (
    "Download it on your machine, add it to `stage:` (`MODEL: ~/models/gpt2`), and pass "
    "$STAGE_MODEL to the program."
)
"""The fix in a job file."""
_BY_NAME = {"from_pretrained", "load_dataset", "snapshot_download", "hf_hub_download", "load_model"}
"""Functions whose first argument is a path or a name on the Hugging Face Hub."""
_ALWAYS = {"urlopen", "urlretrieve", "download_url", "download_and_extract_archive"}


@dataclass(frozen=True)
class Download:
    """One call that would download."""

    at: Position
    words: str
    """The call in short, like `from_pretrained("gpt2")`."""


def downloads(program: PythonFile) -> Iterator[Download]:
    """Yield the calls of a program that download."""
    for call in program.calls:
        if words := _words(call):
            yield Download(call.at, words)


def _words(call: Call) -> str:
    """Return a short form of a call that downloads; "" for another call."""
    first = call.get("", 0)
    text = first.value if first is not None and isinstance(first.value, str) else None
    if call.is_true("download"):
        return f"{call.last}(download=True)"
    if call.is_true("local_files_only"):
        return ""
    if call.last in _BY_NAME and text and not text.startswith((".", "/", "~", "$")):
        return f'{call.last}("{text[:40]}")'
    if call.name.endswith(("hub.load", "hub.load_state_dict_from_url")):
        return f"{call.name}(...)"
    if call.name in ("requests.get", "httpx.get") or call.last in _ALWAYS:
        return f"{call.name}(...)"
    mode = call.get("mode")
    online = mode is not None and mode.value == "online"
    return f'{call.name}(mode="online")' if call.name == "wandb.init" and online else ""


_OTHER_READERS = (
    "absl", "click", "configargparse", "docopt", "draccus", "fire", "gflags", "hydra",
    "jsonargparse", "simple_parsing", "tap", "typer", "tyro",
)  # fmt: skip
"""Packages that parse the command line in their own way."""
_SILENT = (
    "parse_known_args", "parse_known_intermixed_args", "add_subparsers",
    "parse_args_into_dataclasses", "parse_intermixed_args", "LightningCLI", "HfArgumentParser",
    "TrlParser",
)  # fmt: skip
"""Calls after which unknown options may also be valid."""
DEEPSPEED_OPTIONS = (
    "--deepspeed", "--deepspeed_config", "--deepscale", "--deepscale_config", "--deepspeed_mpi",
)  # fmt: skip
"""Options added by `deepspeed.add_config_arguments(parser)` (deepspeed/__init__.py)."""
_RENAMED = re.compile(r"\.add_argument\b(?!\s*\()")
"""The method under another name, whose options are unknown."""
_WHOLE_LINE = ("", "None", "args", "argv", "arguments", "sys.argv[1:]")
"""How `parse_args` is called to read the command line."""


@dataclass(frozen=True)
class ParserOptions:
    """All options of a program."""

    file: str
    flags: tuple[str, ...]
    abbreviated: bool = True
    """Whether a prefix of an option is enough (argparse's `allow_abbrev`)."""
    sure: bool = False
    """Whether the program certainly reads its command line with these options alone."""

    def knows(self, word: str) -> bool:
        """Return whether argparse treats a word that begins with a dash as an option."""
        flag = word.partition("=")[0]
        if flag in self.flags or flag in ("-h", "--help"):
            return True
        if flag.startswith("--"):
            return self.abbreviated and any(one.startswith(flag) for one in self.flags)
        short = [one for one in self.flags if not one.startswith("--")]
        return any(word.startswith(one) or one.startswith(flag) for one in short)

    def near(self, word: str) -> str:
        """Return the option that was probably meant, or ""."""
        flag = word.partition("=")[0]
        plain = {one.lstrip("-").replace("_", "-").lower(): one for one in self.flags}
        name = flag.lstrip("-").replace("_", "-").lower()
        short = [one for one in plain if name == _initials(one) or _initials(name) == one]
        begun = [one for one in plain if f"{name}-".startswith(f"{one}-") or one in name.split("-")]
        whole = [one for one in plain if one.startswith(name) and flag.startswith("--")]
        found = short or begun or (whole if len(whole) == 1 else [])
        found = found or difflib.get_close_matches(name, plain, n=1, cutoff=0.7)
        return plain[found[0]] if found else ""


def _initials(name: str) -> str:
    parts = [part for part in name.split("-") if part]
    return "".join(part[0] for part in parts) if len(parts) > 1 else ""


def options_of(run: StepProgram) -> ParserOptions | None:
    """Return the program's options; None if some are unknown, or argparse reads none."""
    if run.uses(*_OTHER_READERS) or run.has(*_SILENT) or not run.files:
        return None
    if not run.has("argparse.ArgumentParser") or not _reads_the_line(run):
        return None
    made = [call for _file, call in run.calls("argparse.ArgumentParser")]
    parsers = {call.target for call in made}
    groups = run.calls("add_argument_group", "add_mutually_exclusive_group")
    parsers |= {call.target for _file, call in groups}
    flags: list[str] = []
    for program in run.files:
        for call in program.calls:
            if call.last == "add_argument":
                own = _flags(call)
                if own is None:
                    return None
                flags += own
            elif any(one.text in parsers or one.text == "parser" for one in call.arguments):
                if call.name == "deepspeed.add_config_arguments":
                    flags += DEEPSPEED_OPTIONS
                elif not any(call.last in file.functions for file in run.files):
                    return None  # other code may add options
            if call.name == "argparse.ArgumentParser" and _is_odd(call):
                return None
    short = any((word := call.get("allow_abbrev")) and word.value is False for call in made)
    always = any(run.program.always(call) for call in run.program.named("parse_args"))
    renamed = _RENAMED.search("".join(run.job.files.get(one.file, "") for one in run.files))
    sure = always and len(made) == 1 and not renamed
    known = tuple(dict.fromkeys(flags))
    return ParserOptions(run.program.file, known, not short, sure) if known else None


def _is_odd(call: Call) -> bool:
    names = ("parents", "prefix_chars", "fromfile_prefix_chars")
    return call.open or any(call.get(name) is not None for name in names)


def _flags(call: Call) -> list[str] | None:
    """Return the names in a call of add_argument; None if some are unknown."""
    if call.open or not call.arguments:
        return None
    plain = [one for one in call.arguments if not one.name]
    if not plain or any(not isinstance(one.value, str) for one in plain):
        return None
    nargs, action = call.get("nargs"), call.get("action")
    if nargs is not None and (nargs.text.endswith("REMAINDER") or nargs.value == "..."):
        return None
    flags = [str(one.value) for one in plain if str(one.value).startswith("-")]
    if action is not None and action.text.endswith("BooleanOptionalAction"):
        flags += [f"--no-{flag[2:]}" for flag in flags if flag.startswith("--")]
    return flags


def _reads_the_line(run: StepProgram) -> bool:
    """Return whether only argparse reads the program's command line."""
    reading = [
        (file, call)
        for file, call in run.calls("parse_args")
        if len(call.arguments) < 2 and _first(call) in _WHOLE_LINE
    ]
    own = [call for file, call in reading if file is run.program or run.program.has(call.function)]
    words = sum(1 for _file, call in reading if _first(call) == "sys.argv[1:]")
    named = sum(run.job.files.get(one.file, "").count("sys.argv") for one in run.files)
    return bool(own) and named <= words and len(reading) == len([*run.calls("parse_args")])


def _first(call: Call) -> str:
    given = call.get("args", 0)
    return given.text if given is not None else ""


def given_options(run: StepProgram) -> Iterator[int]:
    """Yield the positions of the words on the command line that argparse treats as options."""
    for number, word in enumerate(run.step.arguments):
        text = word.known
        if text == "--":
            return
        if is_option(text):
            yield number


def is_option(word: str) -> bool:
    """Return whether argparse treats a word as an option."""
    return len(word) > 1 and word.startswith("-") and not is_number(word)


def is_number(text: str) -> bool:
    """Return whether Python reads a text as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
