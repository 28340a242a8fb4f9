"""What a line of a log means: Slurm 22-24, PyTorch 2, DeepSpeed, Singularity.

`{what}` in a sentence is what the pattern's groups found; a group `rank` names the rank.
"""

from lumitui.app.explain.failure.log_rule import LogRule
from lumitui.app.explain.failure.log_rule import log_rule as _rule
from lumitui.app.explain.failure.meanings import STATE_RULES
from lumitui.app.explain.failure.program_rules import DEVICES, PROGRAMS
from lumitui.remote.scheduler.states import State

RULES: tuple[LogRule, ...] = (
    _rule(
        "time-limit",
        r"DUE TO TIME LIMIT",
        STATE_RULES[State.TIMEOUT].sentence,
        STATE_RULES[State.TIMEOUT].do,
    ),
    _rule(
        "node-failed",
        r"DUE TO NODE FAILURE|Node failure on|: NODE_FAIL\b",
        STATE_RULES[State.NODE_FAILED].sentence,
        STATE_RULES[State.NODE_FAILED].do,
    ),
    _rule(
        "host-memory",
        r"[Dd]etected [1-9]\d* oom[-_]kill|OOM Killed|Out of memory: Killed process"
        r"|^srun: error: \S+: tasks? (?P<rank>\d{1,6})\S*: Out Of Memory"
        r"|DefaultCPUAllocator: (?:can't|not enough)",
        STATE_RULES[State.OUT_OF_MEMORY].sentence,
        STATE_RULES[State.OUT_OF_MEMORY].do,
    ),
    _rule(
        "gpu-memory",
        r"^\s*(?:[\w.]+Error|what\(\)): +(?:(?:HIP|CUDA) error: |(?:HIP|CUDA|GPU) )out of memory"
        r"|^\s*(?:\w+\.)*OutOfMemoryError\b|(?:hip|cuda)ErrorOutOfMemory"
        r"|(?:^|ERROR.* |FAILED .*Error: )(?:HIP|CUDA) out of memory\. Tried to allocate"
        r"|HIP_ERROR_OutOfMemory|CUDA_ERROR_OUT_OF_MEMORY",
        "A GPU ran out of memory.",
        "Make the batch of each rank smaller, use bf16 or activation checkpointing, "
        "or split the states (`strategy: zero2` or `zero3`).",
    ),
    _rule(
        "archive",
        r"lumitui: the code could not be unpacked on every node",
        "The archive with the code was damaged, or a node had no room for it.",
        "Read the lines above it; resubmit, with more `memory:` where the nodes' /tmp is memory.",
    ),
    _rule(
        "cpu-bind",
        r"(?i:cpu[- ]bind(?:ing)?) outside of job step allocation",
        "The CPU masks name cores that the job was not given.",
        "Use whole nodes (`exclusive: true` on a shared partition), or `binding: auto`.",
    ),
    _rule(
        "numa-binding",
        r"Must bind to a non-empty set of CPU indices",
        "torchrun's --numa-binding found none of the job's cores beside a GPU.",
        "Use whole nodes (`exclusive: true` on a shared partition), or `binding: none`.",
    ),
    _rule(
        "no-scontrol",
        r"\bscontrol: (?:command )?not found|\[Errno 2\].*'scontrol'",
        "The program asks Slurm's scontrol, which is not in the container.",
        "Read MASTER_ADDR and MASTER_PORT, which the job script sets before the container starts.",
    ),
    _rule(
        "memory-monitor",
        r"kdreg2 monitor not available",
        "libfabric in this image has no kdreg2, which FI_MR_CACHE_MONITOR asks for.",
        "Remove FI_MR_CACHE_MONITOR from `env:`; the site's profile sets what the image needs.",
    ),
    _rule(
        "step-refused",
        r"srun: error: (?:Unable to create step|Unable to confirm allocation)[^:]*: (?P<what>.+)"
        r"|srun: (?:fatal|error): (?P<rest>.*configuration is not available.*)",
        "srun could not start the ranks inside the job ({what}).",
        "Compare tasks, cores and memory of the job with what a node has.",
    ),
    _rule(
        "port-in-use",
        r"EADDRINUSE|[Aa]ddress already in use|server socket has failed to listen",
        "The rendezvous port was taken, usually by a process of an earlier launch on that node.",
        "Resubmit: a new job has another port. On shared nodes use `exclusive: true`.",
    ),
    _rule(
        "quota",
        r"Disk quota exceeded|Errno 122\b|EDQUOT",
        "The disk quota is used up: space or number of files.",
        "Remove old checkpoints and caches, or write to another file system.",
    ),
    _rule(
        "no-space",
        r"No space left on device|Errno 28\b|ENOSPC",
        "A file system is full; on a node, /tmp and /dev/shm are main memory of the job.",
        "Remove old files, or point caches and checkpoints elsewhere.",
    ),
    _rule(
        "no-command",
        r": exec: (?P<what>[^\s:]+): (?:command )?not found"
        r"|^(?:/usr/bin/)?env: ['\u2018]?(?P<shebang>[^'\u2019:]+)['\u2019]?: No such file"
        r"|error: execve\(\): (?P<path>[^\s:]+): No such file",
        "The program {what} was not found.",
        "Check the container and the name of the interpreter.",
    ),
    _rule(
        "no-module",
        r"^\s*ModuleNotFoundError: No module named '?(?P<what>[\w.]+)",
        "Python cannot find the module {what} where the ranks run.",
        "Install it in the environment of `container: {venv: …}`, or ship it with the project.",
    ),
    _rule(
        "no-file",
        r"^\s*FileNotFoundError: (?:\[Errno 2\] )?No such file or directory: (?P<what>\S.*)"
        r"|can't open file (?P<script>.+): \[Errno 2\]",
        "A file does not exist: {what}.",
        "Write paths relative to `workdir:` in the run's copy of the project, or use `links:`.",
    ),
    _rule(
        "architecture",
        r"(?P<what>\S+): (?:cannot execute binary file: )?Exec format error"
        r"|(?P<image>the image's architecture \(\w+\)) could not run on the host's \(\w+\)",
        "The program is built for other processors than the nodes have ({what}).",
        "Build it on a login host with the nodes' processors, or choose an image for them.",
    ),
    _rule(
        "no-image",
        r"^FATAL: {3}(?:.*: )?could not open image (?P<what>[^\s:]+)",
        "The container image {what} cannot be opened.",
        "Check `container: {image: …}`; the site's own images change names over time.",
    ),
    _rule(
        "container-command",
        r"^FATAL: {3}(?:\S+: )?permission denied",
        "The container was asked to run something that is not a program.",
        "Check that the interpreter comes before the script, and that the image's path is right.",
    ),
    _rule(
        "container",
        r"^FATAL: {2,3}(?P<what>.+)|(?P<said>container creation failed: .+)",
        "The container did not start: {what}.",
        "Check the image and `container: {binds: …}`; sources of binds must exist on the site.",
    ),
    _rule(
        "no-environment-module",
        r"following module\(s\) are unknown: (?P<what>.+)"
        r"|Unable to locate a modulefile for (?P<name>.+)",
        "An environment module does not exist ({what}).",
        "Check the site's profile: the module may have been renamed or removed.",
    ),
    _rule(
        "batch-triangle",
        r"Check batch related parameters|train_batch_size is not equal to",
        "DeepSpeed's batch sizes contradict each other for this number of ranks.",
        "train_batch_size must be micro batch x accumulation x ranks; give the configuration as "
        "`deepspeed: {config: …}` and it is recomputed.",
    ),
    _rule(
        "two-precisions",
        r"bfloat16 and fp16 modes cannot be simultaneously enabled",
        "DeepSpeed's configuration enables fp16 and bf16.",
        "Keep one of them.",
    ),
    _rule(
        "device-ordinal",
        r"invalid device ordinal|hipErrorInvalidDevice\b|LOCAL_RANK=\d+ but only \d+ GPUs",
        "A rank asked for a GPU that it does not see.",
        "Let all ranks of a node see all its GPUs (no --gpu-bind, no --gpus-per-task) "
        "and choose by LOCAL_RANK.",
    ),
    _rule(
        "gpu-fault",
        r"Memory access fault by GPU|HSA_STATUS_ERROR\w*|an illegal memory access",
        "A GPU reported a memory fault.",
        "Run again; if the same node fails, exclude it with `sbatch: [--exclude=NODE]`.",
    ),
    _rule(
        "proof-strict",
        r"lumitui: (?P<what>local rank \d+ has its cores \S+ on \d+ of \d+ nodes"
        r"|not all ranks see the same GPUs"
        r"|the driver shows local rank \d+ (?:its )?GPU[\w.: ]* on \d+ of \d+ nodes)"
        r"; nothing was launched",
        "The binding is not proven ({what}), and `proof: strict` ended the job.",
        "Read the proof; use whole nodes, or `proof: on` to run anyway.",
    ),
    _rule(
        "preflight",
        r"lumitui: preflight: (?P<what>.+); nothing was launched\.",
        "The preflight found {what}, and `preflight: end` ended the job.",
        "Resubmit it without that node (`sbatch: [--exclude=NODE]`), and tell the site's support; "
        "or use `preflight: warn` to run anyway.",
    ),
    _rule(
        "venv-build",
        r"lumitui: the environment could not be built: (?P<what>.+)",
        "The environment of `venv:` could not be built: {what}.",
        "Correct `venv:`; venv.log in the run's folder has all that pip said.",
    ),
    _rule(
        "second-job",
        r"lumitui: attempt \d+ belongs to job (?P<what>\d+)",
        "This job was a second one for the same run and ended at once; job {what} has it.",
        "Nothing needs to be done.",
    ),
    _rule(
        "usage",
        r"^[\w.-]+\.py: error: (?P<what>.+)"
        r"|^(?:ddp|fsdp|deepspeed_zero|lightning_trainer)\.py: (?P<said>.+)",
        "The program refused to start.",
        "Fix what the line names, usually in `args:`.",
    ),
    *DEVICES,
    *PROGRAMS,
)
"""Causes: the first one in the log is the likeliest."""

SCARCE = frozenset({"gpu-memory", "quota", "no-space"})
"""Rules whose exception is shown too when its handling raised the one that ended the program."""

CONSEQUENCES: tuple[LogRule, ...] = (
    _rule(
        "collective-timeout",
        r"Watchdog caught collective operation timeout|Timed out waiting \d+ms for (?:recv|send)",
        "A collective operation timed out: some ranks waited for one that did not join.",
        "Read that rank's lines before the timeout; the cause is usually uneven data or a crash.",
    ),
    _rule(
        "rendezvous",
        r"Rendezvous\w*(?:Timeout|Connection|Closed)\w*Error|waiting for clients\. \d+/\d+ clients"
        r"|client socket has timed out|DistStoreError|DistNetworkError",
        "The ranks did not find each other in time.",
        "Check whether a rank ended earlier; if not, check MASTER_ADDR and the network interface.",
    ),
    _rule(
        "network",
        r"nccl(?:System|Internal|Remote)Error|NCCL (?:WARN|error).*(?:[Nn]o interface|unhandled)"
        r"|DistBackendError|OFI poll failed|fi_domain failed|NCCL error: unhandled",
        "The GPUs' communication library failed.",
        "Check whether a rank ended earlier; if not, check the network interface and plugin "
        "with NCCL_DEBUG=INFO.",
    ),
    _rule(
        "partial-topology",
        r"Failed to find reverse path from remNode",
        "RCCL found no path between the GPUs of a part of a node.",
        "Use all GPUs of a node, or other GPUs: resubmit.",
    ),
    _rule(
        "peer-lost",
        r"Connection (?:closed|reset) by (?:remote )?peer|Broken pipe|Connection refused",
        "A rank lost its connection to another, which had usually ended first.",
        "Find the rank that ended first.",
    ),
    _rule(
        "killed-by-signal",
        r"srun: error: \S+: tasks? (?P<rank>\d{1,6})\S*: "
        r"(?P<what>Segmentation fault|Bus error|Aborted|Illegal instruction)"
        r"|Fatal Python error: (?P<fatal>.+)",
        "A process crashed outside of Python ({what}).",
        "Set PYTHONFAULTHANDLER to 1 in `env:` to see where; try another version of the library.",
    ),
)
"""What one rank sees when another has ended: shown after the causes."""
