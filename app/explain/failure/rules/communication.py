"""What lines of NCCL, RCCL, libfabric, MPI and PyTorch's rendezvous mean."""

from lumitui.app.explain.failure.rules.row import LogRule
from lumitui.app.explain.failure.rules.row import log_rule as _rule

COMMUNICATION: tuple[LogRule, ...] = (
    _rule(
        "memory-monitor",
        r"kdreg2 monitor not available",
        "libfabric in this image has no kdreg2, which FI_MR_CACHE_MONITOR asks for.",
        "Remove FI_MR_CACHE_MONITOR from `env:`; the site's profile sets what the image needs.",
    ),
    _rule(
        "port-in-use",
        r"EADDRINUSE|[Aa]ddress already in use|server socket has failed to listen"
        r"|\b(?:Errno|errno:?) 98\b|[Pp]ort \d+ is (?:already )?(?:in use|used|occupied)"
        r"|on port `?\d+`?, but another process is utilizing it",
        "The rendezvous port was taken, usually by a process of an earlier launch on that node.",
        "Resubmit: a new job has another port. On shared nodes use `exclusive: true`.",
    ),
    _rule(
        "no-interface",
        r"no socket interface found|[Nn]o (?:usable|valid|network) interface|[Nn]o interface found"
        r"|[Uu]nable to find (?:interface|address for)|makeDeviceFor(?:Hostname|Interface)\(\)"
        r"|[Cc]ould not find interface",
        "The communication library found no network interface of the name that it was given.",
        "Remove NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME from `env:`; the site's profile sets "
        "what its network needs.",
    ),
    _rule(
        "mpi-start",
        r"OMPI was not built with SLURM's PMI|PMI2?_Init(?:ialized)?\b.*[Ff]ail|PMI2?_Init failed"
        r"|PMIX ERROR|Fatal error in (?:P?MPI|internal)_Init|An error occurred in MPI_Init"
        r"|MPIR_Init_thread\(\d+\)|(?:orte|opal|ompi|MPI)\w* ?(?:runtime )?_?init failed"
        r"|There are not enough slots available|requires .*--with-pmi|PMI server not found"
        r"|mpirun was unable to (?:launch|find|start)|OPAL ERROR: Unreachable"
        r"|PMI2?_\w+ returned \d+"
        r"|like MPI_I(?:NIT|nit) failed|PMI (?:init|connect\w*) failed|connect failed.*PMI failed"
        r"|ORTE_ERROR_LOG: .*(?:pmi|ess_)|ORTE was unable to|ORTE does not know"
        r"|srun: error: (?:Invalid MPI type|.*mpi plugin|.*for mpi/pm)",
        "MPI did not start: it does not fit Slurm's way of starting the tasks.",
        "Start it with the launcher and the MPI of the site (`srun --mpi=pmi2` or `pmix`), or "
        "without MPI.",
    ),
    _rule(
        "no-backend",
        r"Distributed package doesn't have (?:NCCL|MPI|GLOO)|No backend type associated with device"
        r"|Unknown c10d backend|[Ii]nvalid backend",
        "PyTorch has no communication backend for these devices.",
        "Use `nccl` for GPUs (RCCL has that name too) with a PyTorch that is built for them, and "
        "move tensors to the GPU before they are exchanged.",
    ),
    _rule(
        "rank-variables",
        r"env:// rendezvous: (?:environment variable )?\w+(?: expected, but)? not set"
        r"|\bKeyError: '(?:SLURM_\w+|RANK|LOCAL_RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT)'"
        r"|[Dd]efault process group has not been initialized"
        r"|(?:RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT) (?:is|was|are) not (?:set|defined)"
        r"|environment variable (?:RANK|LOCAL_RANK|WORLD_SIZE|MASTER_\w+)\b.{0,30}(?:not|missing)",
        "The variables that tell a rank who it is are not set.",
        "Start it by a `launcher:` that sets them, read RANK, LOCAL_RANK and WORLD_SIZE, and call "
        "init_process_group first.",
    ),
    _rule(
        "collective-mismatch",
        r"expects same model across all ranks|appears not to match (?:strides|sizes) of the same"
        r"|Detected mismatch between collectives on ranks|mismatch(?:ed)? (?:in )?(?:collective|"
        r"tensor shape)s?\b.{0,40}ranks|Tensors must be CUDA and dense",
        "The ranks called different collective operations, or with different shapes.",
        "Let all ranks take the same branches; drop uneven last batches (drop_last=True).",
    ),
)
"""What is wrong before the ranks talk to each other."""

CONSEQUENCES: tuple[LogRule, ...] = (
    _rule(
        "collective-timeout",
        r"(?i:collective operation timeout|due to a collective timeout|collective \w+ timed out)"
        r"|Timeout at NCCL work"
        r"|Timed out waiting \d+ms for (?:recv|send)|Some NCCL operations have failed or timed out"
        r"|monitored_?[bB]arrier|watchdog got stuck|[Ww]atchdog .{0,60}(?:timeout|timed out)"
        r"|Work(?:NCCL|Gloo)\(.{1,200}(?:timed out|timing out)|(?i:barrier|allreduce|all_reduce)"
        r"\b.{0,40}timed out|[Hh]eartbeat monitor timed out"
        r"|[Ww]atchdog hang|Missed ranks|stalled (?:tensors|ranks)",
        "A collective operation timed out: some ranks waited for one that did not join.",
        "Read that rank's lines before the timeout; the cause is usually uneven data or a crash.",
    ),
    _rule(
        "rendezvous",
        r"Rendezvous\w*(?:Timeout|Connection|Closed|Graceful)\w*Error|waiting for clients\. \d+/\d+"
        r"|client socket has timed out|DistStoreError|DistNetworkError"
        r"|[Ss]ocket [Tt]imeout|[Tt]imeout waiting for key|store->get\(|failed to recv, got 0 bytes"
        r"|[Ww]ait timeout after \d+ms|Stop_waiting response|TCPStore.{0,80}(?:[Tt]imed? ?out|fail)"
        r"|[Rr]endezvous .{0,60}(?:timed out|failed|closed)|(?:MASTER_ADDR|master).{0,60}Name or "
        r"service not known|[Cc]onnect timeout .*rank \d+"
        r"|Timed out initializing process group|\(gai error: -?\d+",
        "The ranks did not find each other in time.",
        "Check whether a rank ended earlier; if not, check MASTER_ADDR and the network interface.",
    ),
    _rule(
        "partial-topology",
        r"Failed to find reverse path from remNode",
        "RCCL found no path between the GPUs of a part of a node.",
        "Use all GPUs of a node, or other GPUs: resubmit.",
    ),
    _rule(
        "peer-lost",
        r"Connection (?:was )?(?:closed|reset|aborted)(?: by (?:remote )?peer)?|Broken pipe"
        r"|(?<!failed : )(?<!returned )(?<!urlopen error \[Errno 111\] )Connection refused"
        r"|remote process (?:has )?exit"
        r"|ncclRemoteError|peer .{0,30}(?:closed|"
        r"disconnected|has gone)|handle_cq_error:.{0,60}- CANCELED|[Ee]rror 104\b"
        r"|lost (?:connection|communication) (?:to|with)"
        r"|Socket closed|HorovodInternalError|Horovod has been shut down",
        "A rank lost its connection to another, which had usually ended first.",
        "Find the rank that ended first.",
    ),
    _rule(
        "network",
        r"nccl(?:System|Internal|InvalidUsage|InvalidArgument|UnhandledCuda)Error"
        r"|(?:\b[NR]CCL (?:WARN|[Ee]rror|failure)|\.(?:h|cc"
        r"|cu):\d+ WARN)\b.{0,200}(?:[Nn]o interface|unhandled|NET/(?:OFI|IB|"
        r"Socket)|ibv_|socket|[Tt]imeout|internal|[Cc]all to|CXI|fi_)|DistBackendError"
        r"|OFI poll failed|fi_(?:domain|endpoint|cq_\w+|mr_\w+|getinfo|send|recv)\w*\(?\)? ?"
        r"(?:failed|returned)|(?i:cassini|\bcxi\b).{0,80}(?:overflow|error|fail|timeout)|PTLTE_NOT"
        r"|MPIDI_OFI_\w+\(\d+\)|ibv_\w+ (?:failed|returned)"
        r"|[Tt]ransport retry count(?:er)? exceeded|cqe with error"
        r"|UCX +ERROR|No route to host|NCCL communicator (?:was|encountered)"
        r"|libfabric:\d+:.{0,120}(?i:error|fail|unable|cannot)|Network is down|local QP operation"
        r"|\bcxi[l_]?_?map\w*(?::| failed)|(?i:\bgloo\b.{0,40}fail)|gloo/transport/|NCCL error"
        r"|RCCL error|CCL WARN (?:Cuda|HIP|hip) failure|unhandled (?:system"
        r"|cuda|internal) error",
        "The GPUs' communication library failed.",
        "Check whether a rank ended earlier; if not, check the network interface and plugin "
        "with NCCL_DEBUG=INFO.",
    ),
    _rule(
        "killed-by-signal",
        r"srun: error: \S+: tasks? (?P<rank>\d{1,6})\S*: "
        r"(?P<what>Segmentation fault|Bus error|Aborted|Illegal instruction|Floating point exc\w+)"
        r"|Fatal Python error: (?P<fatal>.+)|: line \d+: +\d+ (?P<shell>Segmentation fault|Aborted"
        r"|Bus error|Floating point exception)|^(?P<bare>Segmentation fault|Bus error|Aborted"
        r"|Floating point exception)\b|failed \(exitcode: (?P<code>-(?:4|6|7|8|11))\)"
        r"|exits with return code = (?P<deepspeed>-(?:4|6|7|8|11))\b"
        r"|Signal (?P<elastic>(?:4|6|7|8|11) \(SIG[A-Z]+\)) received"
        r"|Caught signal (?P<caught>\d+ \([^)]*\))|Signal: (?P<ompi>(?:Segm|Bus|Abort)[\w ]+)"
        r"|DataLoader worker \(pid[^)]*\) is killed by signal: (?P<worker>[\w ]+)"
        r"|died with <Signals\.(?P<died>SIG(?:SEGV|BUS|ABRT|FPE|ILL))"
        r"|terminated with signal (?P<mp>SIG(?:SEGV|BUS|ABRT|FPE|ILL))"
        r"|: (?P<assertion>Assertion .{1,200} failed)|(?P<dumped>\w[\w ]*) \(core dumped\)"
        r"|exited on signal (?P<mpi>\d+ \([^)]*\))|EXIT STRING: (?P<hydra>.+)"
        r"|^(?P<glibc>(?:free|munmap_chunk|malloc|realloc|calloc|malloc_consolidate)\(\): .+"
        r"|double free or corruption.*|corrupted (?:size vs|double-linked).*"
        r"|\*\*\* (?:stack smashing|buffer overflow) detected.*)",
        "A process crashed outside of Python ({what}).",
        "Set PYTHONFAULTHANDLER to 1 in `env:` to see where; try another version of the library.",
    ),
)
"""What one rank sees when another has ended: shown after the causes."""

MPI_ENDS: tuple[LogRule, ...] = (
    _rule(
        "mpi-abort",
        r"MPI_ABORT was invoked|application called MPI_Abort|Fatal error in P?MPI_\w+"
        r"|BAD TERMINATION OF ONE|Abort\(\d+\) on node|Abort\(\d+\) \(rank (?P<rank>\d{1,6}) in"
        r"|MPI_ERRORS_ARE_FATAL|mpirun (?:noticed|detected) that|Primary job +terminated normally",
        "MPI ended all ranks because one of them failed.",
        "Find the rank that ended first, and its lines before this one.",
    ),
)
"""What MPI writes whatever happened: counts where nothing else does."""
