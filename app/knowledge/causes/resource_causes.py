"""Meanings of log lines about exhausted memory, disk, files or processes."""

from lumitui.app.knowledge.causes.meanings import STATE_RULES, LogRule, Meaning
from lumitui.app.knowledge.causes.meanings import log_rule as _rule
from lumitui.remote.site.states import State

_HOST = STATE_RULES[State.OUT_OF_MEMORY]
REFUSED = Meaning(
    _HOST.id,
    "The program tried to allocate {what} of main memory at once.",
    "Check the size that it computes there. If it is right, load or create the data in parts, or "
    "request more `memory:` or whole nodes.",
)
"""What a line of `_HOST` means if it has the group `refused`: Slurm killed nothing."""
REFUSED_SOME = "A process asked for more main memory than it could get."
"""The same, if the line does not show how much."""

RESOURCES: tuple[LogRule, ...] = (
    _rule(
        "shared-memory",
        r"insufficient shared memory|(?<!resource: )out of shared memory"
        r"|DataLoader worker \(pid[^)]*\) is killed by signal: Bus error"
        r"|(?i:(?:unable to|could not|failed to|error while|cannot) (?:open|write|mmap|allocat\w+"
        r"|resiz\w+|creat\w+|extend\w*)\b.{0,60}(?:shared.?mem\w*|/dev/shm|</torch_))"
        r"|(?:/dev/shm|/torch_|shmem|posix_fallocate).*No space left"
        r"|No space left on device.*(?:/dev/shm|/torch_)|shm_open\b.{0,80}(?:failed|No space)"
        r"|not enough space for .{0,40}shared.memory"
        r"|/dev/shm\b.{0,60}(?:is full|too small|not enough|insufficient)"
        r"|[Nn]ot enough (?:space|memory)\b.{0,120}/dev/shm|exceeds .{0,30}/dev/shm"
        r"|shared.memory backing file\b.{0,60}(?:fail|space)",
        "The node's shared memory (/dev/shm) is used up, usually by the data loader's workers.",
        "Use fewer data-loader workers or a smaller batch, or request more `memory:`.",
    ),
    _rule(
        _HOST.id,
        r"[Dd]etected [1-9]\d* oom[-_ ]?kill|\bOOM[- ]?[Kk]illed\b"
        r"|(?i:out of memory: kill(?:ed)? process)|[Mm]emory cgroup out of memory|oom-kill:constr"
        r"|^srun: error: \S+: tasks? (?P<rank>\d{1,6})\S*: Out Of Memory"
        r"|(?i:exceeded (?:job|step|virtual)? ?memory limit)|memory limit .{0,40}being killed"
        r"|DataLoader worker \(pid[^)]*\) is killed by signal: Killed"
        r"|killed due to (?:memory pressure|the node running low on memory)"
        r"|node running low on memory|DUE TO OUT OF MEMORY"
        r"|hit memory(?:\+swap)? limit at least once|[Kk]illed by the (?:kernel )?OOM"
        r"|[Ww]orker exceeded \d+% memory budget"
        r"|CANCELLED[:\w ]*[Ee]xceeded memory limit"
        r"|(?P<refused>DefaultCPUAllocator: (?:can't|not enough)|alloc_cpu\.cpp"
        r"|^\s*(?:[\w.]+\.)?_?(?:Array|Arrow)?MemoryError\b|std::bad_alloc(?!.*(?:CUDA|cuda|HIP))"
        r"|[Uu]nable to mmap \d.{0,200}Cannot allocate memory|LLVM ERROR: out of memory"
        r"|OutOfMemoryError: (?:Java heap|GC overhead)|Python error: \w*[Mm]alloc: out of memory"
        r"|\[?(?i:errno) 12\]? Cannot allocate memory|(?:malloc|mmap|fork)\b.{0,40}Cannot allocate"
        r"|[Uu]nable to allocate [\d.]+ ?[KMGT]?i?B? for an array"
        r"|not enough memory: you tried to allocate|memory allocation of \d+ bytes failed"
        r"|runtime: out of memory|JavaScript heap out of memory|MPI_ERR_NO_MEM"
        r"|not enough (?:system|host|main|CPU) (?:memory|RAM)"
        r"|(?i:ran|run) out of (?:host|system|main|CPU) (?:memory|RAM)"
        r"|tcmalloc: .{0,40}alloc.{0,40}fail)",
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
        r"|(?i:miopen\w*_(?:alloc_failed|memory_error))"
        r"|RESOURCE_EXHAUSTED: .*(?i:out of memory|oom|allocat)"
        r"|ResourceExhaustedError(?!.*(?:No space|quota))|OOM when allocating tensor"
        r"|HSA_STATUS_ERROR_OUT_OF_RESOURCES|ran out of memory trying to allocate"
        r"|[Nn]ot enough (?:GPU|device|video) memory|No available memory for the cache blocks"
        r"|failed to allocate \S+ .{0,20}from device|vk::OutOfDeviceMemory"
        r"|RMM failure .*(?:bad_alloc|memory)"
        r"|\b(?:cuda|hip)(?:Host)?(?:Malloc|MemCreate|MemAlloc)\w*\b.{0,60}(?:failed|out of memory)"
        r"|(?i:\b(?:cuda|hip|gpu|cumem|vram)[a-z]*\b.{0,60}(?<!host )\bout of memory)"
        r"|(?i:\bout of memory\b.{0,20}\b(?:on|of) (?:the )?(?:gpu|device)\b)"
        r"|[Ff]ailed to allocate (?:device|GPU|VRAM) memory"
        r"|KV.cache\b.{0,80}(?:not enough|insufficient|larger than|is needed)"
        r"|larger than the maximum number of tokens that can be stored in KV cache"
        r"|GPUassert: out of memory|std::bad_alloc: .{0,40}(?:CUDA|HIP)",
        "A GPU ran out of memory.",
        "Make the batch of each rank smaller, use bf16 or activation checkpointing, "
        "or split the states (`strategy: zero2` or `zero3`).",
    ),
    _rule(
        "quota",
        r"(?i:disk quota exceeded|\berrno:? ?122\b|edquot|\bover quota|\b(?:disk|file|inode|user"
        r"|group|project) quota\b.{0,30}(?:exceeded|reached|exhausted)|quota (?:has been "
        r"|was )?exceeded|exceed\w* (?:the |your )?(?:disk|file) quota)"
        r"|exceeded your (?:\w+ )?quota|\bEDQUOT\b",
        "You have used up your disk quota: space or number of files.",
        "Remove old checkpoints and caches, or write to another file system.",
    ),
    _rule(
        "no-space",
        r"No space left on device|Errno 28\b(?!\] inotify)|ENOSPC"
        r"|(?i:not enough (?:free )?disk space|disk full)|(?i:file ?system (?:is )?full)"
        r"|PytorchStreamWriter failed writing|unexpected pos \d+ vs \d+|database or disk is full"
        r"|[Nn]ot enough free disk space|NotEnoughDiskSpace|Wrote only \d+ of \d+ bytes"
        r"|\d+ requested and \d+ written",
        "A file system is full; on a node, /tmp and /dev/shm use the job's main memory.",
        "Remove old files, or point caches and checkpoints elsewhere.",
    ),
    _rule(
        "open-files",
        r"Too many open files|inotify (?:watch|instance) limit|received 0 items of ancdata"
        r"|\bEMFILE\b|Errno 24\b|filedescriptor out of range in select|\bENFILE\b|Errno 23\b",
        "A process had too many files open.",
        "Use fewer data-loader workers, raise `ulimit -n`, or share tensors by file "
        "(torch.multiprocessing.set_sharing_strategy('file_system')).",
    ),
    _rule(
        "processes",
        r"can't start new thread|unable to allocate necessary resources for OMP"
        r"|what\(\): +Resource temporarily unavailable|[Tt]hread creation failed"
        r"|[Ff]ailed to create thread|pthread_create(?::| failed| error)"
        r"|fork: (?:Resource temporarily|Cannot alloc)"
        r"|[Uu]nable to create (?:new )?(?:native )?thread"
        r"|(?:fork|[Cc]ould not create thread|clone)\b.{0,40}Resource temporarily unavail"
        r"|BlockingIOError: \[Errno 11\] Resource temporarily unavailable$|RLIMIT_NPROC"
        r"|(?i:thread|clone|fork|spawn).{0,120}(?<!lock file, errno = 11, error message ="
        r" ')(?i:resource temporarily unavailable)|failed to create new OS thread"
        r"|ThreadPoolBuildError|creation via pthread_create\(\) failed"
        r"|^(?:OSError|BlockingIOError): \[Errno 11\] Resource temporarily unavailable$"
        r"|(?:nproc|process|thread)\w* limit (?:reached|exceeded)",
        "The system did not let the job start any more threads or processes.",
        "Set OMP_NUM_THREADS to the number of cores per rank, and use fewer data-loader workers.",
    ),
)
"""Exhausted resources."""

KILLED = (
    _rule(
        _HOST.id,
        r"failed \(exitcode: -9\)|died with <Signals\.SIGKILL|terminated with signal SIGKILL"
        r"|(?:exits with return code =|crashed with exit code) -9\b|Signal 9 \(SIGKILL\) received"
        r"|: line \d+: +\d+ Killed\b|^Killed$"
        r"|srun: error: \S+: tasks? (?P<rank>\d{1,6})\S*: Killed",
        "Something outside the job killed a process (signal 9): most often, its node ran out of "
        "main memory.",
        _HOST.do,
    ),
)
"""An unexplained kill."""

LATE_MEMORY: tuple[LogRule, ...] = (
    _rule(
        _HOST.id, r"Cannot allocate memory|^(?:\w+: )?[Oo]ut of memory\b", _HOST.sentence, _HOST.do
    ),
)
"""Errors that do not show which memory ran out: count only without other causes."""
