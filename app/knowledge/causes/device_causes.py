"""Meanings of log lines from ROCm, CUDA and their libraries.

The lines come from public threads; tests/exam/logs contains an excerpt and its address for each.
"""

from lumitui.app.knowledge.causes.meanings import LogRule
from lumitui.app.knowledge.causes.meanings import log_rule as _rule

DEVICES: tuple[LogRule, ...] = (
    _rule(
        "gpu-hardware",
        r"(?i:uncorrectable (?:ecc|nvlink|memory|hbm|error)|ecc_?uncorrectable)"
        r"|(?:hip|cuda)ErrorECC|CUDA_ERROR_(?:ECC_UNCORRECTABLE|NVLINK_UNC\w+)"
        r"|cudaErrorNvlinkUncorrectable|RAS: (?:uncorrectable|poison)"
        r"|(?i:\bxid\b.{0,60}?): (?:48|62|63|64|74|79|92|94|95|119|120|140)\b"
        r"|GPU (?:is lost|has fallen off|at \S+ has fallen)|fallen off the bus"
        r"|Unable to determine the device handle for|(?i:gpu requires reset)"
        r"|(?i:hardware error|poison consumption).{0,40}(?i:gpu|hbm|amdgpu)"
        r"|amdgpu.{0,80}(?:RAS|uncorrectable|GPU reset begin)"
        r"|peer GPU memory over nvlink or a hardware error"
        r"|(?i:nvlink\b(?! *(?:error|fatal|warning) *:).{0,40}(?:fatal|error)\b)"
        r"|(?i:row remapp\w+ (?:failure|pending))|(?i:gpu\b.{0,20}has fallen off)",
        "A GPU's memory or link is broken; the program is not to blame.",
        "Resubmit from the checkpoint without that node (`sbatch: [--exclude=NODE]`), and send "
        "this line to the site's support.",
    ),
    _rule(
        "gpu-architecture",
        r"(?i:(?:\berror\b.*|text: )invalid device function)"
        r"|(?:hip|cuda)ErrorInvalidDeviceFunction|no kernel image is available for execution"
        r"|(?:hip|cuda)ErrorNoBinaryForGpu|(?:CUDA|ROCm|HIP) capability sm_\d+ is not compatible"
        r"|HSA_STATUS_ERROR_INVALID_ISA|(?:hip|cuda)ErrorNoKernelImageForDevice"
        r"|CUDA_ERROR_NO_BINARY_FOR_GPU|device kernel image is invalid"
        r"|Cannot read \S*TensileLibrary"
        r"|only supports? (?:Ampere|Hopper|Turing|\S* ?GPUs? (?:newer|with compute))"
        r"|FlashAttention only supports|compiled with an unsupported toolchain"
        r"|no (?:GPU )?code object|Unable to find code object for all current devices"
        r"|[Cc]ould not find .{0,30}code object|invalid target ID|unsupported GPU architecture"
        r"|TensileLibrary\S*: No such file|type fp8\w+ not supported in this architecture"
        r"|(?:cuda|hip)Error(?:InvalidKernelImage|UnsupportedPtxVersion|NoBinary\w*|InvalidImage)"
        r"|CUDA_ERROR_(?:UNSUPPORTED_PTX|INVALID_IMAGE|INVALID_PTX)\w*|no kernel image"
        r"|(?i:gpu|device)\b.{0,40}compute capability .{0,60}(?:not supported|too low|unsupported"
        r"|is required|or higher)|HIPBLAS_STATUS_ARCH_MISMATCH|CU\w+_STATUS_ARCH_MISMATCH"
        r"|CUDNN_STATUS_ARCH_MISMATCH",
        "A library has no code for this kind of GPU.",
        "Use an image or a wheel built for the nodes' GPUs; also build extensions for them "
        "(PYTORCH_ROCM_ARCH, TORCH_CUDA_ARCH_LIST).",
    ),
    _rule(
        "gpu-driver",
        r"driver version is insufficient|[Dd]river/library version mismatch"
        r"|driver on your system is too old|(?:cuda|hip)ErrorInsufficientDriver"
        r"|unsupported display driver / cuda driver|forward compatibility was attempted"
        r"|[Ss]ystem not yet initialized|(?:cuda|hip)ErrorSystem(?:NotReady|DriverMismatch)"
        r"|CUDA_ERROR_SYSTEM_(?:NOT_READY|DRIV)|compat(?:ibility)? .*driver.*not support"
        r"|kernel version \S+ does not match DSO version|unsatisfied condition: (?:cuda|driver)"
        r"|(?i:requires? (?:a |an )?(?:\w+ )?driver (?:version|release))"
        r"|older than the PTX compiler|built for NVIDIA Driver Release"
        r"|(?i:update your (?:gpu|nvidia|cuda|display)? ?driver)|\bError 80[234]\b"
        r"|CUDA error \(?80[234]\b|(?i:driver is too old|driver too old)"
        r"|unsupported CUDA version: driver",
        "The GPUs' driver does not match the program's CUDA or ROCm, or is not ready on that node.",
        "Use an image for the site's driver; if other nodes work, exclude this one "
        "(`sbatch: [--exclude=NODE]`) and tell the site's support.",
    ),
    _rule(
        "no-gpu",
        r"No (?:HIP|CUDA) GPUs are available"
        r"|[Nn]o (?:CUDA|ROCm|HIP)[- ](?:capable|enabled)? ?devices? (?:is |are |were "
        r"|was )?(?:detected|found|available)|(?:hip|cuda)ErrorNoDevice"
        r"|Torch not compiled with CUDA enabled|CUDA_ERROR_NO_DEVICE|[Ff]ound no NVIDIA driver"
        r"|No visible GPU devices|No CUDA GPU detected|Backend '(?:gpu|cuda|rocm)' failed to init"
        r"|Error: Unable to initialize backend '(?:gpu|cuda|rocm)'|CUDA unknown error"
        r"|No supported gpu backend found"
        r"|(?i:error).{0,80}(?:CUDA|GPU|HIP|ROCm) (?:is|are|was) (?:not|un)(?: ?available"
        r"| detected)"
        r"|(?i:error|exception|assert|exit|abort).{0,60}(?i:no gpus?(?: or \w+)? (?:was |were "
        r"|are )?(?:found|detected|available|visible))"
        r"|torch\.cuda\.is_available\(\) (?:is|returned) False"
        r"|deserialize object on a CUDA device but|[Uu]nable to open /dev/kfd(?!.*Permission)"
        r"|ROCk module is NOT loaded|hsa_init\w* [Ff]ailed"
        r"|NVIDIA-SMI has failed because it couldn't communicate"
        r"|(?i:no (?:nvidia|amd) gpus? (?:found|detected))|number of (?:CUDA )?devices: 0\b"
        r"|^Failed to initialize NVML: (?:Unknown|Driver Not)|NVMLError_(?:Driver|Library)Not"
        r"|NVML Shared Library Not Found|Tensile host: No devices found|Failed to infer device type"
        r"|can ?not run on your system since (?:the|this) accelerator is not available"
        r"|requires? (?:at least )?(?:one|a) (?:CUDA|GPU|ROCm)\b.{0,40}(?:none|no |not )"
        r"|no platforms that are instances of|^No devices were found"
        r"|CUDA driver initialization failed"
        r"|failed call to cuInit: CUDA_ERROR_(?:UNKNOWN|NO_DEVICE)"
        r"|(?i:\b(?:CUDA|GPU|ROCm|HIP)s? (?:is|are) required\b)|(?i:cannot find any gpus?)"
        r"|(?i:no (?:accelerators?|gpus?) (?:was |were |is |are )?(?:found|detected"
        r"|available)(?!.{0,40}(?:falling|using|cpu)))|\b0 active drivers"
        r"|Incompatible kernel and userspace, device unavailable|nvml error: driver not loaded"
        r"|accelerator device when none is available|HIP initialization: .{0,40}no\b"
        r"|hipErrorNotInitialized"
        r"|(?i:(?:error|exception|fatal)\b.{0,40}(?:need|require)s? (?:a|an|at least one|one) gpu)",
        "The program saw no GPU.",
        "Request GPUs, pass them into the container, use a PyTorch build that supports them, and "
        "do not set ROCR_VISIBLE_DEVICES or CUDA_VISIBLE_DEVICES to an empty value.",
    ),
    _rule(
        "gpu-busy",
        r"(?:busy or unavailable)|(?:cuda|hip)ErrorDevices?(?:Unavailable|AlreadyInUse)"
        r"|CUDA_ERROR_DEVICE_UNAVAILABLE|exclusive-thread device already in use"
        r"|CUDA_ERROR_(?:DEVICE_ALREADY_IN_USE|CONTEXT_ALREADY_IN_USE)|hipErrorContextAlreadyInUse",
        "Another process holds the GPU, so this one cannot use it.",
        "Start one process per GPU; if the job's ranks are not to blame, resubmit without that "
        "node (`sbatch: [--exclude=NODE]`).",
    ),
    _rule(
        "device-ordinal",
        r"invalid device ordinal|(?:hip|cuda)ErrorInvalidDevice\b|LOCAL_RANK=\d+ but only \d+ GPUs"
        r"|[Ii]nvalid device id|(?i:you requested gpu: )|device >= 0 && device < num_gpus"
        r"|CUDA_ERROR_INVALID_DEVICE\b|[Dd]evice cuda:\d+ is not available, available"
        r"|local rank \S+ .{0,40}only \d+ .{0,20}(?:GPU|device)s?|listed an invalid GPU id"
        r"|Invalid visible device list"
        r"|(?i:device (?:index|id|ordinal)\b.{0,30}(?:out of range|invalid|not exist))"
        r"|(?i:local.?rank \d+ .{0,30}out of range)"
        r"|nproc_per_node\b.{0,60}(?:greater|less|more|exceed).{0,60}GPUs?"
        r"|(?i:gpu (?:index|id) \d+ .{0,60}(?:not exist|invalid|out of))|tried to use device \d+"
        r"|only \d+ (?:visible )?(?:GPUs?|devices?) (?:is|are) (?:visible|available)",
        "A rank requested a GPU that it does not see.",
        "Let all ranks of a node see all its GPUs (no --gpu-bind, no --gpus-per-task) "
        "and choose by LOCAL_RANK.",
    ),
    _rule(
        "duplicate-gpu",
        r"Duplicate GPU detected"
        r"|[Mm]ultiple processes .{0,60}on (?:the )?same (?:CUDA )?(?:device|GPU)",
        "Two ranks of a node use the same GPU.",
        "Select the GPU by LOCAL_RANK (SLURM_LOCALID), and start at most one rank per GPU.",
    ),
    _rule(
        "gpu-assert",
        r"[Dd]evice-side assert|(?:hip|cuda)ErrorAssert\b|CUDA_ERROR_ASSERT|Device-side assertion"
        r"|\.(?:cu|hip)h?:\d+: .{0,200}block: ?\[.{1,200}Assertion `?.{1,200}(?:failed|$)",
        "The program gave a GPU an index that is out of range.",
        "Check labels and token ids against the number of classes and the vocabulary; run once "
        "with AMD_SERIALIZE_KERNEL=3 or CUDA_LAUNCH_BLOCKING=1 in `env:` to find the call that "
        "fails.",
    ),
    _rule(
        "miopen",
        r"miopenStatus\w*(?:Error|Failed)?|MIOpen(?:\(HIP\))?: Error|MIOpen Error: "
        r"|accessing SQLite database: |sqlite_db\.cpp:\d+: |\.u[fp]?db\.txt"
        r"|MIOpen(?!\.so).{0,80}(?:database is locked|Permission denied|cannot (?:open|find"
        r"|create))",
        "MIOpen could not build a kernel, or could not use its cache.",
        "Set MIOPEN_USER_DB_PATH and MIOPEN_CUSTOM_CACHE_DIR to a folder on the node, such as "
        "/tmp; if it still cannot build, use another image.",
    ),
    _rule(
        "gpu-fault",
        r"Memory access fault by GPU|HSA_STATUS_ERROR\w*|HW Exception by GPU|(?i:\bgpu hang\b)"
        r"|(?:an )?illegal (?:memory access|instruction) was encountered|an illegal memory access"
        r"|(?:hip|cuda)Error(?:IllegalAddress|LaunchFailure|MisalignedAddress|IllegalInstruction)"
        r"|unspecified launch failure|[Mm]isaligned address|error: hardware stack error"
        r"|Warp Illegal|(?i:\bxid\b.{0,60}?): (?:13|31|43|45)\b"
        r"|CUDA_ERROR_(?:ILLEGAL_ADDRESS|LAUNCH_FAILED|MISALIGNED|LAUNCH_TIMEOUT)"
        r"|(?:CUDA|HIP|cuda runtime) error:?(?: \(\d+\) ?:)? unknown error"
        r"|(?:hip|cuda)ErrorUnknown|(?:hip|cuda)ErrorLaunchTimeOut"
        r"|launch timed out and was terminated"
        r"|(?:hip|cuda)Error(?:InvalidPc|InvalidAddressSpace|HardwareStackError|ContextIsDestroyed"
        r"|UnmapBuffer\w*)"
        r"|CUDA_ERROR_(?:INVALID_PC|INVALID_ADDRESS_SPACE|HARDWARE_STACK_ERROR|UNKNOWN)\b"
        r"|invalid program counter|operation not supported on global/shared address space"
        r"|Warp (?:Out-of-range|Misaligned|Assert|Stack)"
        r"|Invalid __(?:global|shared|local)__ (?:read|write|atomic)|HSA_EXCEPTION"
        r"|hipErrorLaunchFailure|MES failed to respond"
        r"|amdgpu.{0,60}(?:page fault|GPUVM fault|VM_L2_PROTECTION)|ring \S+ timeout",
        "A GPU reported a fault while it ran the program's code.",
        "Run once with AMD_SERIALIZE_KERNEL=3 or CUDA_LAUNCH_BLOCKING=1 in `env:` to find the call "
        "that fails: usually the program is at fault. Exclude the node "
        "(`sbatch: [--exclude=NODE]`) only if it is always the same one.",
    ),
    _rule(
        "gpu-library",
        r"(?:CUBLAS|CUDNN|CUSPARSE|CUSOLVER|HIPBLAS|ROCBLAS|HIPSPARSE"
        r"|HIPSOLVER)_STATUS_(?!SUCCESS)\w+|rocblas_status_(?!success)\w+"
        r"|CUFFT_(?!SUCCESS)[A-Z_]+_ERROR|CUFFT_INTERNAL_ERROR"
        r"|(?i:\b(?:cu|roc|hip)(?:rand|fft|blas|dnn|sparse|solver)\w* (?:error|failure))"
        r"|CURAND_STATUS_(?!SUCCESS)\w+|[Uu]nable to find a valid cuDNN algorithm"
        r"|was unable to find an engine to execute|rocBLAS error"
        r"|(?i:cudnn\b.{0,80}(?:not compatible|source was compiled with|needs to have matching"
        r"|failed to initialize|initialization failed|version incompatib\w+))"
        r"|DNN library (?:initialization failed|is not found)|Failed to get convolution algorithm"
        r"|Blas \w+ launch failed|[Ff]ailed to execute (?:cuBLAS|cuDNN|hipBLAS|rocBLAS)|magma_init"
        r"|(?i:could ?n[o']t create (?:cudnn|cublas|cusolver|hipblas|rocblas) handle)"
        r"|CUFFT_ALLOC_FAILED|CUFFT_(?:INVALID|EXEC|SETUP)\w+|hipblaslt? error|hipsparse\w* error",
        "A GPU library failed (BLAS, cuDNN or FFT): often too little memory was left, or the "
        "library has the wrong version.",
        "Try a smaller batch per rank once; if it still fails, use another image.",
    ),
    _rule(
        "gpu-error",
        r"\b(?:CUDA|HIP|cuda|hip)(?: runtime"
        r"| driver)? error:? (?:\(?\d+\)?:? ?:? ?)?(?P<what>[a-z][\w ]+)"
        r"|Triton Error \[(?:CUDA|HIP)\]: (?P<triton>.+)"
        r"|\b(?P<name>(?:cuda|hip)Error(?!Handl|_t\b|Str|Name|Check)[A-Z]\w+|CUDA_ERROR_[A-Z_]+)\b",
        "A call to the GPU failed: {what}.",
        "Run once with AMD_SERIALIZE_KERNEL=3 or CUDA_LAUNCH_BLOCKING=1 in `env:` to find the call "
        "that fails. If only one node fails, exclude it.",
    ),
    _rule(
        "precision",
        r"(?i:(?:bf16|bfloat16)(?:/gpu)?\b.{0,60}(?:not supported|only supported|requires|needs)"
        r"|doesn't support bf16|does not support bf(?:loat)?16|fp8.{0,40}(?:requires"
        r"|only supported))|(?i:current GPU .{0,40}bf(?:loat)?16)",
        "The GPUs do not support the requested precision.",
        "If the GPUs lack bf16, use fp16; if they lack fp8, use bf16.",
    ),
    _rule(
        "forked",
        r"Cannot re-initialize (?:CUDA|HIP) in forked subprocess"
        r"|current process has finished its bootstrapping phase"
        r"|create new processes if CUDA is already initialized",
        "A process forked after it had used the GPU.",
        "Start processes with spawn (multiprocessing_context='spawn'), under "
        "`if __name__ == '__main__':`.",
    ),
)
"""Errors of GPUs and their libraries."""
