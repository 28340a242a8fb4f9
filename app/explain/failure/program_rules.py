"""What lines of ROCm, CUDA, PyTorch, DeepSpeed and the hubs' clients mean.

The wordings are those of public threads; tests/exam/logs has an excerpt and its address for each.
"""

from lumitui.app.explain.failure.log_rule import LogRule
from lumitui.app.explain.failure.log_rule import log_rule as _rule

DEVICES: tuple[LogRule, ...] = (
    _rule(
        "gpu-architecture",
        r"(?i:(?:\berror\b.*|text: )invalid device function)|(?:hip|cuda)ErrorInvalidDeviceFunction"
        r"|no kernel image is available for execution|(?:hip|cuda)ErrorNoBinaryForGpu",
        "A library has no code for this kind of GPU.",
        "Use an image or a wheel that is built for the nodes' GPUs; build extensions for them too "
        "(PYTORCH_ROCM_ARCH, TORCH_CUDA_ARCH_LIST).",
    ),
    _rule(
        "gpu-hardware",
        r"uncorrectable ECC error encountered|ECC_UNCORRECTABLE|ECCUncorrectable"
        r"|RAS: (?:uncorrectable|poison)|\bXid \(PCI.{1,40}\): (?:48|63|64|74|79|94|95),",
        "A GPU's memory or link is broken; the program is not to blame.",
        "Resubmit from the checkpoint without that node (`sbatch: [--exclude=NODE]`), and send "
        "this line to the site's support.",
    ),
    _rule(
        "no-gpu",
        r"No (?:HIP|CUDA) GPUs are available|no (?:CUDA|ROCm)-capable device is detected"
        r"|(?:hip|cuda)ErrorNoDevice|Torch not compiled with CUDA enabled",
        "The program saw no GPU.",
        "Ask for GPUs, pass them into the container, and do not empty ROCR_VISIBLE_DEVICES or "
        "CUDA_VISIBLE_DEVICES; use a PyTorch that is built for them.",
    ),
    _rule(
        "miopen",
        r"miopenStatus(?:Unknown|Internal)Error|MIOpen(?:\(HIP\))?: Error \[(?:Compile|Build)"
        r"|MIOpen Error: |accessing SQLite database: |sqlite_db\.cpp:\d+: open memvfs"
        r"|\.u[fp]?db\.txt",
        "MIOpen could not build a kernel, or could not use its cache.",
        "Set MIOPEN_USER_DB_PATH and MIOPEN_CUSTOM_CACHE_DIR to a folder of the node, such as "
        "/tmp; if it still cannot build, use another image.",
    ),
    _rule(
        "gpu-assert",
        r"device-side assert triggered|\.cu:\d+: .{1,200}Assertion `.{1,200}` failed",
        "The program gave a GPU an index that is out of range.",
        "Check labels and token ids against the number of classes and the vocabulary; run once "
        "with AMD_SERIALIZE_KERNEL=3 or CUDA_LAUNCH_BLOCKING=1 in `env:` to see the line.",
    ),
    _rule(
        "duplicate-gpu",
        r"Duplicate GPU detected",
        "Two ranks of a node use the same GPU.",
        "Choose the GPU by LOCAL_RANK (SLURM_LOCALID), and start at most one rank a GPU.",
    ),
)
"""The GPUs and their libraries."""

PROGRAMS: tuple[LogRule, ...] = (
    _rule(
        "no-internet",
        r"Max retries exceeded with url|Errno 101\] Network is unreachable"
        r"|gaierror: \[Errno|Temporary failure in name resolution|LocalEntryNotFoundError"
        r"|[Cc]ouldn't connect to 'https|outgoing traffic has been disabled",
        "The program wanted a file from the internet, which it could not reach.",
        "Download models and data on a login host first, and set HF_HUB_OFFLINE to 1 in `env:`.",
    ),
    _rule(
        "hub-auth",
        r"GatedRepoError|access(?: a)? gated repo|HTTPError: 40[13] Client Error"
        r"|Invalid user token|Invalid credentials in Authorization header",
        "A hub refused the download: no token, or no access to that model.",
        "Ask for access on the model's page, and give the token with `secrets: [HF_TOKEN]`.",
    ),
    _rule(
        "numerics",
        r"[Ll]oss scale already at minimum|Minimum loss scale reached"
        r"|(?i:floatingpointerror): (?:Minimum loss|Loss became|NaN)"
        r"|returned nan values in its \d+th output|Loss is nan, stopping",
        "The numbers overflowed: loss or gradients are not finite.",
        "Use bf16, a lower learning rate or gradient clipping, and resubmit from a checkpoint "
        "before it; or look at the data.",
    ),
    _rule(
        "checkpoint-mismatch",
        r"Error\(s\) in loading state_dict|^\s*(?:Missing|Unexpected) key\(s\) in state_dict"
        r"|size mismatch for \S+: copying a param",
        "The checkpoint does not fit the model.",
        "Load it with the model's settings of that run, or begin without it.",
    ),
    _rule(
        "corrupt-file",
        r"PytorchStreamReader failed|invalid load key, '|Error while deserializing header"
        r"|UnpicklingError|zipfile\.BadZipFile|pickle data was truncated",
        "A file is damaged or incomplete, often a checkpoint whose writing was cut.",
        "Take the checkpoint before it, or copy the file again.",
    ),
    _rule(
        "unused-parameters",
        r"Expected to have finished reduction in the prior iteration",
        "Some parameters of the model got no gradient, and DDP waited for them.",
        "Use all of them in the loss, or pass find_unused_parameters=True to DDP.",
    ),
    _rule(
        "rank-variables",
        r"env:// rendezvous: (?:environment variable )?\w+(?: expected, but)? not set"
        r"|^KeyError: '(?:RANK|LOCAL_RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT)'",
        "The variables that tell a rank who it is are not set.",
        "Start it by a `launcher:` that sets them, and read RANK, LOCAL_RANK and WORLD_SIZE.",
    ),
    _rule(
        "shared-memory",
        r"insufficient shared memory|out of shared memory"
        r"|DataLoader worker \(pid \d+\) is killed by signal: Bus error",
        "The data loader's workers used up the node's shared memory.",
        "Use fewer data-loader workers or a smaller batch, or ask for more `memory:`.",
    ),
    _rule(
        "library-abi",
        r"undefined symbol: |version `(?:GLIBC|GLIBCXX|CXXABI)_[\d.]+' not found",
        "A library was built for another version of PyTorch or of the system.",
        "Build it in the image in which it runs, or take the wheel for that version of PyTorch.",
    ),
    _rule(
        "jit-build",
        r"Error building extension '|ninja: build stopped|'ninja', '-v'\]' returned non-zero"
        r"|Ninja is required to load C\+\+ extensions",
        "An extension could not be compiled when the program started.",
        "Build it in the environment beforehand (DS_BUILD_OPS=1), with the image's own compiler.",
    ),
    _rule(
        "file-lock",
        r"unable to lock file|No locks available|H5FD_sec2_lock"
        r"|\[Errno 38\] Function not implemented",
        "The file system refused to lock a file.",
        "Set HDF5_USE_FILE_LOCKING to FALSE in `env:`, or put the file elsewhere.",
    ),
    _rule(
        "open-files",
        r"Too many open files|received 0 items of ancdata",
        "A process had too many files open.",
        "Use fewer data-loader workers, raise `ulimit -n`, or share tensors by file "
        "(torch.multiprocessing.set_sharing_strategy('file_system')).",
    ),
    _rule(
        "permission",
        r"PermissionError: \[Errno 13\] Permission denied(?:: (?P<what>\S+))?",
        "The program may not read or write a file: {what}.",
        "Point caches (HF_HOME, TRITON_CACHE_DIR, XDG_CACHE_HOME) and output to a folder of yours.",
    ),
)
"""The program, its libraries and its files."""
