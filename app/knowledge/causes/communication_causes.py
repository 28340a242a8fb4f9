"""Meanings of log lines from NCCL, RCCL, libfabric, MPI and PyTorch's rendezvous."""

from lumitui.app.knowledge.causes.meanings import LogRule
from lumitui.app.knowledge.causes.meanings import log_rule as _rule

COMMUNICATION: tuple[LogRule, ...] = (
    _rule(
        "memory-monitor",
        r"kdreg2 monitor not available",
        "libfabric in this image has no kdreg2, which FI_MR_CACHE_MONITOR requests.",
        "Remove FI_MR_CACHE_MONITOR from `env:`; the site's profile sets what the image needs.",
    ),
    _rule(
        "port-in-use",
        r"EADDRINUSE|[Aa]ddress already in use|server socket has failed to listen"
        r"|\b(?:Errno|errno:?) 98\b|[Pp]ort \d+ is (?:already )?(?:in use|used|occupied)"
        r"|on port `?\d+`?, but another process is utilizing it|(?i:failed to bind to port)"
        r"|[Pp]ort \d+ is already allocated|trying to use a port number \d+ that is used"
        r"|already in use \(os error 98\)|BindException",
        "The rendezvous port was taken, usually by a process of an earlier launch on that node.",
        "Resubmit: a new job uses another port. On shared nodes, use `exclusive: true`.",
    ),
    _rule(
        "no-interface",
        r"no socket interface found|[Nn]o (?:usable|valid|network) interface|[Nn]o interface found"
        r"|[Uu]nable to find (?:interface|address for)|makeDeviceFor(?:Hostname|Interface)\(\)"
        r"|[Cc]ould not find interface|No interface with name"
        r"|network (?:device|interface) \S+ (?:was |is )?not (?:available|found)"
        r"|\binterface \S+ (?:was |is )?not found|Address family not supported by protocol"
        r"|task-to-task (?:communication )?interfaces|[Nn]o network interface",
        "The communication library found no network interface with the configured name.",
        "Remove NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME from `env:`; the site's profile sets "
        "what its network needs.",
    ),
    _rule(
        "mpi-start",
        r"OMPI was not built with SLURM's PMI|PMI2?_Init(?:ialized)?\b.*[Ff]ail|PMI2?_Init failed"
        r"|PMIX ERROR(?!.*(?:NO_PERMISSIONS))|Fatal error in (?:P?MPI|internal)_Init"
        r"|An error occurred in MPI_Init|MPIR_Init_thread\(\d+\)"
        r"|(?:orte|opal|ompi|MPI)\w* ?(?:runtime )?_?init failed"
        r"|There are not enough slots available|requires .*--with-pmi|PMI server not found"
        r"|mpirun was unable to (?:launch|find|start)|OPAL ERROR: Unreachable"
        r"|PMI2?_\w+ returned \d+|like MPI_I(?:NIT|nit) failed|PMI (?:init|connect\w*) failed"
        r"|connect failed.*PMI failed|ORTE_ERROR_LOG: .*(?:pmi|ess_)|ORTE was unable to"
        r"|ORTE does not know|srun: error: (?:Invalid MPI type|.*mpi plugin|.*for mpi/pm)"
        r"|MPIR_Init_thread\(|daemon has unexpectedly failed after launch"
        r"|before MPI_INIT was invoked|[Uu]nable to get local PMI"
        r"|PMIx?2?_Init(?:ialized)?\b.{0,30}fail"
        r"|No components were able to be opened in the \w+ framework|PML add procs failed"
        r"|attempt to run as root|srun: error: mpi/|Unrecognized plugin type|HYDU_create_process"
        r"|HYD_\w+ .{0,80}(?:failed|error)|PMI_Get_\w+ failed"
        r"|allocated for this job are already filled|(?i:can ?not load (?:the )?MPI library)"
        r"|pmix_mca_base\w+: unable to open|OFI endpoint open failed"
        r"|(?:MPIDI_OFI|MPIDI_UCX)_mpi_init_hook|PMI_Init returned|MPI startup\(\): .{0,80}fail"
        r"|PMI2? init(?:ialization)? failed|Unable to use a NIC_POLICY",
        "MPI did not start: it is incompatible with the way Slurm starts tasks.",
        "Start the program with the site's launcher and MPI (`srun --mpi=pmi2` or `pmix`), or "
        "without MPI.",
    ),
    _rule(
        "backend-not-built",
        r"Distributed package doesn't have (?P<what>NCCL|MPI|GLOO)",
        "The job's PyTorch was built without {what}.",
        "Check which PyTorch the job imports (`torch.__file__`): packages in `venv:`, `activate:` "
        "or home may hide the image's. On CPUs, use `gloo`.",
    ),
    _rule(
        "no-backend",
        r"No backend type associated with device|Unknown c10d backend|[Ii]nvalid backend"
        r"|[Bb]ackend '?\w+'? is not available",
        "PyTorch has no communication backend for these devices.",
        "On NVIDIA and AMD GPUs, use `nccl` and a PyTorch build for them, and move tensors to "
        "the GPU before you exchange them.",
    ),
    _rule(
        "rank-variables",
        r"env:// rendezvous: (?:environment variable )?\w+(?: expected, but)? not set"
        r"|\bKeyError: '(?:SLURM_\w+|RANK|LOCAL_RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT)'"
        r"|[Dd]efault process group has not been initialized"
        r"|(?:RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT) (?:is|was|are) not (?:set|defined)"
        r"|environment variable (?:RANK|LOCAL_RANK|WORLD_SIZE|MASTER_\w+)\b.{0,30}(?:not|missing)"
        r"|KeyError: '(?:OMPI_COMM_\w+|PMIX?_RANK|LOCAL_WORLD_SIZE|GROUP_RANK|NODE_RANK)'"
        r"|(?:requires?|needs?) setting (?:MASTER|RANK|WORLD)|`--ntasks=\d+` in your SLURM"
        r"|tasks per node configured in SLURM"
        r"|(?:RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT)'? (?:is|was) not found"
        r"|does not match the number of nodes|\bdevices=\S+ .{0,60}--ntasks-per-node",
        "The variables that identify a rank are not set.",
        "Start the program with a `launcher:` that sets them, read RANK, LOCAL_RANK and "
        "WORLD_SIZE, and call init_process_group first.",
    ),
    _rule(
        "collective-mismatch",
        r"expects same model across all ranks|appears not to match (?:strides|sizes) of the same"
        r"|Detected mismatch between collectives on ranks"
        r"|mismatch(?:ed)? (?:in )?(?:collective|tensor shape)s?\b.{0,40}ranks"
        r"|Tensors must be CUDA and dense"
        r"|(?i:mismatched (?:\w+ )?(?:collective|allreduce|allgather|broadcast|reduce\w*"
        r"|data types|tensor shapes?|count))|op\.preamble\.length"
        r"|(?:NCCL WARN|RCCL WARN) .{0,60}mismatch|MPI_ERR_TRUNCATE|[Mm]essage truncated"
        r"|same number of tensors"
        r"|(?i:collective\b.{0,80}\b(?:mismatch|inconsistent) (?:across|between|on) ranks)",
        "The ranks called different collective operations, or the same one with different shapes.",
        "Make all ranks take the same branches; drop uneven last batches (drop_last=True).",
    ),
)
"""Errors before the ranks communicate."""

CONSEQUENCES: tuple[LogRule, ...] = (
    _rule(
        "exit-abort",
        r"terminate called without an active exception",
        "A process aborted, usually during its normal exit, when a gloo thread (PyTorch on CPUs) "
        "may still hold the last tensor.",
        "If the log shows that training had finished, flush the output, then end the program with "
        "`os._exit(0)`, as `lumitui docs scripts` explains.",
    ),
    _rule(
        "collective-timeout",
        r"(?i:collective operation timeout|due to a collective timeout|collective \w+ timed out)"
        r"|Timeout at NCCL work|Timed out waiting \d+ms for (?:recv|send)"
        r"|Some NCCL operations have failed or timed out|monitored_?[bB]arrier|watchdog got stuck"
        r"|[Ww]atchdog .{0,60}(?:timeout|timed out)"
        r"|Work(?:NCCL|Gloo)\(.{1,200}(?:timed out|timing out)"
        r"|(?i:(?<!store based )(?<!store_based_)barrier|allreduce|all_reduce)\b.{0,40}timed out"
        r"|[Hh]eartbeat monitor timed out|[Ww]atchdog hang|Missed ranks|stalled (?:tensors|ranks)"
        r"|Application timeout caused pair closure|waiting for remainder of ranks|Stalled ranks?:"
        r"|watchdog thread terminated with exception: Timeout"
        r"|[Tt]imeout waiting for (?:barrier|all_?\w+)|RPC ran for more than"
        r"|(?i:(?:(?<!store based )(?<!store_based_)barrier|all_?gather|all_?reduce|broadcast"
        r"|reduce_scatter|all_?to_?all)\w*\b.{0,60}\btimed out)",
        "A collective operation timed out: some ranks waited for one that did not join.",
        "Find a rank that reports no timeout, and read its last lines; the cause is usually "
        "uneven data or a crash.",
    ),
    _rule(
        "rendezvous",
        r"Rendezvous\w*(?:Timeout|Connection|Closed|Graceful)\w*Error"
        r"|waiting for clients\. \d+/\d+|client socket has timed out|DistStoreError"
        r"|DistNetworkError|[Ss]ocket [Tt]imeout|[Tt]imeout waiting for key|store->get\("
        r"|failed to recv, got 0 bytes|[Ww]ait timeout after \d+ms|Stop_waiting response"
        r"|TCPStore.{0,80}(?:[Tt]imed? ?out|fail)|[Rr]endezvous .{0,60}(?:timed out|failed|closed)"
        r"|(?:MASTER_ADDR|master).{0,60}Name or service not known|[Cc]onnect timeout .*rank \d+"
        r"|\bthrowTimeoutError\b"
        r"|Timed out initializing process group|\(gai error: -?\d+|connect\(\) timed out"
        r"|client socket has failed to connect to any|distributed service coordinator"
        r"|[Cc]oordination service.{0,80}(?:error|fail|unavail|timed)"
        r"|Timed out waiting for tasks to start"
        r"|(?i:(?:could not|unable to|failed to) connect to (?:the )?(?:ray|gcs|head node|master"
        r"|coordinator|scheduler|store))|host not found: Name or service",
        "The ranks did not find each other in time.",
        "Check whether a rank ended earlier; if not, check MASTER_ADDR and the network interface.",
    ),
    _rule(
        "partial-topology",
        r"Failed to find reverse path from remNode",
        "RCCL found no path between the job's GPUs, which are not all GPUs of the node.",
        "Use all GPUs of a node, or resubmit to get other GPUs.",
    ),
    _rule(
        "peer-lost",
        r"Connection (?:was )?(?:closed|reset|aborted)(?: by (?:remote )?peer)?|Broken pipe"
        r"|(?<!failed : )(?<!returned )(?<!urlopen error \[Errno 111\] )Connection refused"
        r"|remote process (?:has )?exit|ncclRemoteError"
        r"|peer .{0,30}(?:closed|disconnected|has gone)|handle_cq_error:.{0,60}- CANCELED"
        r"|[Ee]rror 104\b|lost (?:connection|communication) (?:to|with)|Socket closed"
        r"|HorovodInternalError|Horovod has been shut down",
        "A rank lost its connection to another, which had usually ended first.",
        "Find the rank that ended first.",
    ),
    _rule(
        "network",
        r"nccl(?:System|Internal|InvalidUsage|InvalidArgument|UnhandledCuda)Error"
        r"|(?:\b[NR]CCL (?:WARN|[Ee]rror|failure)|\.(?:h|cc"
        r"|cu):\d+ WARN)\b.{0,200}(?:[Nn]o interface|unhandled|NET/(?:OFI|IB|Socket)|ibv_|socket"
        r"|[Tt]imeout|internal|[Cc]all to|CXI|fi_)|(?<!instance of 'c10::)DistBackendError"
        r"|OFI poll failed"
        r"|fi_(?:domain|endpoint|cq_\w+|mr_\w+|getinfo|send|recv)\w*\(?\)? ?(?:failed|returned)"
        r"|(?i:cassini|\bcxi\b).{0,80}(?:overflow|error|fail|timeout)|PTLTE_NOT"
        r"|MPIDI_OFI_\w+\(\d+\)\.*: ?\S|ibv_\w+ (?:failed|returned)"
        r"|[Tt]ransport retry count(?:er)? exceeded|cqe with error|UCX +ERROR"
        r"|Failed to create UCP worker|ucp_\w+ failed|BTL \w+ will now abort|OFI MTL is aborting"
        r"|Mismatched address format: remote|fi_cq_readerr|No route to host"
        r"|NCCL communicator (?:was|encountered)"
        r"|libfabric:\d+:.{0,120}(?i:error|fail|unable|cannot)|Network is down|local QP operation"
        r"|\bcxi[l_]?_?map\w*(?::| failed)|(?i:\bgloo\b.{0,40}fail)|gloo/transport/|NCCL error"
        r"|RCCL error|CCL WARN (?:Cuda|HIP|hip) failure|unhandled (?:system|cuda|internal) error"
        r"|\bPTLTE_\w+|got completion with error"
        r"|(?i:retry (?:count|exceeded)\b.{0,80}(?:exceeded|error))"
        r"|\bfi_(?:domain|endpoint|fabric|getinfo|enable|listen|accept|connect|mr_reg\w*|cq_open"
        r"|av_open)(?:\(\))?: |OFI .{0,40}(?:failed|error)|NVSHMEM (?:error|fail)"
        r"|nvshmem\w*.{0,60}(?:failed|error)|ibv_\w+:? .{0,40}fail"
        r"|[Ff]ailed to initialize (?:NET|plugin|OFI|UCX)|no usable transports"
        r"|NET/\w+ .{0,40}(?:failed|error)",
        "The GPUs' communication library failed.",
        "Check whether a rank ended earlier; if not, check the network interface and plugin "
        "with NCCL_DEBUG=INFO.",
    ),
    _rule(
        "killed-by-signal",
        r"srun: error: \S+: tasks? (?P<rank>\d{1,6})\S*: (?P<what>Segmentation fault|Bus error"
        r"|Aborted|Illegal instruction|Floating point exc\w+)|Fatal Python error: (?P<fatal>.+)"
        r"|: line \d+: +\d+ (?P<shell>Segmentation fault|Aborted|Bus error"
        r"|Floating point exception)"
        r"|^(?P<bare>Segmentation fault|Bus error|Aborted|Floating point exception)\b"
        r"|failed \(exitcode: (?P<code>-(?:4|6|7|8|11))\)"
        r"|exits with return code = (?P<deepspeed>-(?:4|6|7|8|11))\b"
        r"|crashed with exit code (?P<composer>-(?:4|6|7|8|11))\b"
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
        "Set PYTHONFAULTHANDLER to 1 in `env:` to find the line; try another library version.",
    ),
)
"""Errors of a rank after another rank has ended: shown after the causes."""

CRASHES: tuple[LogRule, ...] = (
    _rule(
        "killed-by-signal",
        r"terminate called after throwing an instance of '(?P<thrown>[^']{1,200})"
        r"|(?P<active>pure virtual method called)"
        r"|^(?P<check>Check failed: .{1,200})|\b(?P<signal>SIG(?:SEGV|ABRT|BUS|FPE|ILL))\b",
        "A process crashed outside of Python ({what}).",
        "Set PYTHONFAULTHANDLER to 1 in `env:` to find the line; try another library version.",
    ),
)
"""The abort of a C++ or Fortran program, whatever the reason: counts only without other causes."""

MPI_ENDS: tuple[LogRule, ...] = (
    _rule(
        "mpi-abort",
        r"MPI_ABORT was invoked|application called MPI_Abort|Fatal error in P?MPI_\w+"
        r"|BAD TERMINATION OF ONE|Abort\(\d+\) on node|Abort\(\d+\) \(rank (?P<rank>\d{1,6}) in"
        r"|MPI_ERRORS_ARE_FATAL|mpirun (?:noticed|detected) that|Primary job +terminated normally"
        r"|(?:prterun|mpiexec|orterun|prun)(?:\.\w+)? (?:noticed|detected) that",
        "MPI ended all ranks because one of them failed.",
        "Find the rank that ended first, and its lines before this one.",
    ),
)
"""Lines that MPI writes after any failure: count only without other causes."""
