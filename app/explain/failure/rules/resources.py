"""What lines say when memory, disk, files or processes ran out."""

from lumitui.app.explain.failure.meanings import STATE_RULES
from lumitui.app.explain.failure.rules.row import LogRule
from lumitui.app.explain.failure.rules.row import log_rule as _rule
from lumitui.remote.scheduler.states import State

_HOST = STATE_RULES[State.OUT_OF_MEMORY]

RESOURCES: tuple[LogRule, ...] = (
    _rule(
        "shared-memory",
        r"insufficient shared memory|(?<!resource: )out of shared memory"
        r"|DataLoader worker \(pid[^)]*\) is killed by signal: Bus error"
        r"|(?i:(?:unable to|could not|failed to|error while|cannot) (?:open|write|mmap|allocat\w+"
        r"|resiz\w+|creat\w+|extend\w*)\b.{0,60}(?:shared.?mem\w*|/dev/shm|</torch_))"
        r"|(?:/dev/shm|/torch_|shmem|posix_fallocate).*No space left"
        r"|No space left on device.*(?:/dev/shm|/torch_)",
        "The node's shared memory (/dev/shm) is used up, mostly by the data loader's workers.",
        "Use fewer data-loader workers or a smaller batch, or ask for more `memory:`.",
    ),
    _rule(
        _HOST.id,
        r"[Dd]etected [1-9]\d* oom[-_ ]?kill|\bOOM[- ]?[Kk]illed\b"
        r"|(?i:out of memory: kill(?:ed)? process)|[Mm]emory cgroup out of memory|oom-kill:constr"
        r"|^srun: error: \S+: tasks? (?P<rank>\d{1,6})\S*: Out Of Memory"
        r"|DefaultCPUAllocator: (?:can't|not enough)|alloc_cpu\.cpp"
        r"|(?i:exceeded (?:job|step|virtual)? ?memory limit)|memory limit .{0,40}being killed"
        r"|^\s*(?:[\w.]+\.)?_?(?:Array|Arrow)?MemoryError\b|std::bad_alloc"
        r"|[Uu]nable to mmap \d.{0,200}Cannot allocate memory|LLVM ERROR: out of memory"
        r"|OutOfMemoryError: (?:Java heap|GC overhead)|Python error: \w*[Mm]alloc: out of memory"
        r"|\[?(?i:errno) 12\]? Cannot allocate memory|(?:malloc|mmap|fork)\b.{0,40}Cannot allocate"
        r"|DataLoader worker \(pid[^)]*\) is killed by signal: Killed"
        r"|[Uu]nable to allocate [\d.]+ ?[KMGT]?i?B? for an array"
        r"|killed due to (?:memory pressure|the node running low on memory)"
        r"|node running low on memory",
        _HOST.sentence,
        _HOST.do,
    ),
    _rule(
        "gpu-memory",
        r"\b(?:HIP|CUDA|XPU|GPU|cuda|hip) (?:ran |is )?out of memory"
        r"|cuda runtime error \(\d+\) ?: out of memory|Memory not available to allocate buffer"
        r"|Free memory on device .{0,80}less than desired"
        r"|(?i:\b(?:hip|cuda)\w* (?:error|failure|runtime error)\b.{0,60}out of memory)"
        r"|(?<!java\.lang\.)\bOutOfMemoryError\b|(?:hip|cuda)Error(?:OutOfMemory|MemoryAllocation)"
        r"|(?:HIP|CUDA)_ERROR_OUT_?OF_?MEMORY|HIP_ERROR_OutOfMemory"
        r"|(?i:(?:cublas|cudnn|cusparse|cusolver|hipblas|rocblas|miopen)\w*_(?:alloc_failed"
        r"|memory_error))|RESOURCE_EXHAUSTED: .*(?i:out of memory|oom|allocat)"
        r"|ResourceExhaustedError|OOM when allocating tensor|HSA_STATUS_ERROR_OUT_OF_RESOURCES"
        r"|ran out of memory trying to allocate|[Nn]ot enough (?:GPU|device|video) memory"
        r"|No available memory for the cache blocks|failed to allocate \S+ .{0,20}from device"
        r"|CUFFT_ALLOC_FAILED|vk::OutOfDeviceMemory|RMM failure .*(?:bad_alloc|memory)",
        "A GPU ran out of memory.",
        "Make the batch of each rank smaller, use bf16 or activation checkpointing, "
        "or split the states (`strategy: zero2` or `zero3`).",
    ),
    _rule(
        "quota",
        r"(?i:disk quota exceeded|\berrno:? ?122\b|edquot|\bover quota"
        r"|\b(?:disk|file|inode|user|group|project) quota\b.{0,30}(?:exceeded|reached|exhausted)"
        r"|quota (?:has been |was )?exceeded|exceed\w* (?:the |your )?(?:disk|file) quota)",
        "The disk quota is used up: space or number of files.",
        "Remove old checkpoints and caches, or write to another file system.",
    ),
    _rule(
        "no-space",
        r"No space left on device|Errno 28\b(?!\] inotify)|ENOSPC"
        r"|(?i:not enough (?:free )?disk space|disk full)"
        r"|(?i:file ?system (?:is )?full)|PytorchStreamWriter failed writing"
        r"|unexpected pos \d+ vs \d+|database or disk is full|[Nn]ot enough free disk space",
        "A file system is full; on a node, /tmp and /dev/shm are main memory of the job.",
        "Remove old files, or point caches and checkpoints elsewhere.",
    ),
    _rule(
        "open-files",
        r"Too many open files|inotify (?:watch|instance) limit|received 0 items of ancdata"
        r"|\bEMFILE\b|Errno 24\b",
        "A process had too many files open.",
        "Use fewer data-loader workers, raise `ulimit -n`, or share tensors by file "
        "(torch.multiprocessing.set_sharing_strategy('file_system')).",
    ),
    _rule(
        "processes",
        r"can't start new thread|unable to allocate necessary resources for OMP"
        r"|what\(\): +Resource temporarily unavailable|[Tt]hread creation failed"
        r"|[Ff]ailed to create thread"
        r"|pthread_create(?::| failed| error)"
        r"|fork: (?:Resource temporarily|Cannot alloc)|[Uu]nable to create (?:new )?(?:native )?"
        r"thread|(?:fork|[Cc]ould not create thread|clone)\b.{0,40}Resource temporarily unavail"
        r"|BlockingIOError: \[Errno 11\] Resource temporarily unavailable$",
        "The system let the job start no more threads or processes.",
        "Set OMP_NUM_THREADS to the cores of a rank, and use fewer data-loader workers.",
    ),
)
"""What there was too little of."""

KILLED = (
    _rule(
        _HOST.id,
        r"failed \(exitcode: -9\)|died with <Signals\.SIGKILL"
        r"|terminated with signal SIGKILL|exits with return code = -9\b"
        r"|Signal 9 \(SIGKILL\) received|: line \d+: +\d+ Killed\b|^Killed$"
        r"|srun: error: \S+: tasks? (?P<rank>\d{1,6})\S*: Killed",
        "A process was killed from outside (signal 9) and nothing says by whom: most often its "
        "node ran out of main memory.",
        _HOST.do,
    ),
)
"""A kill that nobody explains."""
