"""Meanings of log lines about missing, incompatible or unbuildable modules and libraries."""

import re

from lumitui.app.knowledge.causes.meanings import LogRule, Meaning
from lumitui.app.knowledge.causes.meanings import log_rule as _rule

KNOWN = (
    "torch|torchvision|torchaudio|torchtext|transformers|numpy|deepspeed|peft|accelerate|lightning"
    "|pytorch_lightning|torchmetrics|tensorflow|keras|sklearn|scipy|pandas|datasets|mmcv|mmdet"
    "|mmengine|jax|jaxlib|flax|vllm|trl|diffusers|timm|huggingface_hub|pydantic|triton|xformers"
    "|numba|setuptools|tokenizers|ray|pyarrow|PIL|wandb|bitsandbytes"
)
"""Packages with many versions: a missing part is in another version of the package."""

LIBRARIES: tuple[LogRule, ...] = (
    _rule(
        "jit-build",
        r"Error building extension '|ninja: (?:build stopped|error)|'ninja', '-v'\]' returned"
        r"|Ninja is required|Unable to JIT load|Error compiling objects for extension"
        r"|CUDA_HOME (?:environment variable is not set|does not exist)|CUDAMismatchException"
        r"|MissingCUDAException|nvcc fatal|\bnvcc(?:'|: (?:command )?not found)|hipcc: not found"
        r"|unsupported GNU version|[Ff]ailed to find C compiler"
        r"|No such file or directory: ':?/\S*bin/nvcc'"
        r"|CalledProcessError: Command '\[?'?\S*(?:gcc|g\+\+|cc|clang\S*|ninja|nvcc|hipcc|ptxas)\b"
        r"|fatal error: \S+\.(?:h|hpp|cuh): No such file|cannot find -l\w+|collect2: error"
        r"|ld returned \d exit status|BackendCompilerFailed|torch\._dynamo\.exc\.\w+|InductorError"
        r"|torch\._inductor\.exc\.|LoweringException"
        r"|triton\.(?:compiler|runtime)\.\S*(?:CompilationError|OutOfResources|Error)"
        r"|\[Errno 2\] .*/\.?(?:triton|torchinductor_\w+|torch_extensions)/.*\.(?:tmp|so|hsaco"
        r"|cubin)|[Cc]annot find a working triton|out of resource: shared memory"
        r"|Triton Error(?! \[(?:CUDA|HIP)\])|^LLVM ERROR: (?!out of memory)"
        r"|ptxas (?:fatal|error|fails)|error: command '\S*(?:gcc|g\+\+|nvcc|hipcc|ninja)\S*' failed"
        r"|CUDA version .{0,30}mismatches the version|Failed building wheel for"
        r"|\bcc1(?:plus)?: (?:fatal )?error|^(?:gcc|g\+\+|clang\S*|hipcc|c\+\+): (?:fatal )?error"
        r"|PTX codegen error|[Cc]annot find CUDA_HOME|fatal error: \S+ file not found"
        r"|(?i:nvrtc: error|nvrtc error|hiprtc_error|NVRTC_ERROR)"
        r"|^make(?:\[\d+\])?: \*\*\* .*Error|^CMake Error|[Uu]nable to find ninja"
        r"|Failed in nopython mode pipeline|^FAILED: \S+\.o\b|subprocess-exited-with-error"
        r"|PassManager::run failed|ptxas exited|Dynamo is not supported|(?i:nvcc.{0,3} not found)"
        r"|^\S+\.(?:c|cc|cpp|cu|hip|h|cuh|hpp):\d+:\d+: (?:fatal )?error: "
        r"|^\S+\.cuh?\(\d+\): error|\d+ errors? detected in the compilation of"
        r"|hipErrorSharedObjectInitFailed|torch\.compile .{0,60}(?:fail|error)",
        "Code could not be compiled when the program started: an extension, Triton's kernels or "
        "torch.compile's output.",
        "Build it in the environment beforehand (DS_BUILD_OPS=1), with the image's own compiler; "
        "or run without torch.compile.",
    ),
    _rule(
        "library-abi",
        r"undefined symbol: |version `?'?(?:GLIBC|GLIBCXX|CXXABI)_[\d.]+'? (?:not found|required)"
        r"|symbol lookup error|numpy\.\S*dtype size changed|binary incompatibility"
        r"|_ARRAY_API not found|multiarray failed to import|compiled using NumPy 1"
        r"|operator torchvision::\w+ does not exist|torchvision has CUDA Version="
        r"|PyTorch and torchvision were compiled with different"
        r"|compiled against (?:API|ABI) version|undefined reference to"
        r"|incompatible (?:ABI|with this Python)|ABI mismatch"
        r"|header version .{0,40}library version|libtorch\w*\.so.{0,60}(?:undefined|incompatible)"
        r"|Symbol not found|symbol \S+,? version \S+ not defined in file|relocation error: "
        r"|HDF5 library version mismatched|Descriptors cannot (?:not )?be created"
        r"|is incompatible with libgomp|OMP: Error #15|static TLS block"
        r"|[Cc]ouldn't load custom C\+\+ ops|RuntimeError: Numpy is not available"
        r"|of \S+ raised unreported exception|version `\S+' not found|kernel too old"
        r"|MKL FATAL ERROR|address/offset not properly aligned|cannot import name '_C'",
        "A library was built for a different version of PyTorch or of the system.",
        "Build it in the image in which it runs, or use the wheel for that version of PyTorch.",
    ),
    _rule(
        "no-library",
        r"(?:ImportError|OSError|RuntimeError): (?:.{0,120}: )?(?P<what>[\w.+-]+\.so[\d.]*):"
        r" cannot open shared object|error while loading shared libraries: (?P<load>[^:\s]+)"
        r"|(?:Could not|[Uu]nable to|cannot) (?:load|dlopen"
        r"|find) (?:the )?(?:dynamic )?(?:shared )?library:? '?(?P<lib>[\w.+/-]+)"
        r"|dlopen(?:: |\()(?P<dl>\S+)[:,].{0,60}(?:cannot|fail)|a shared library is likely missing"
        r"|(?P<any>lib[\w.+-]+\.so[\d.]*): cannot open shared object file"
        r"|(?:Failed|[Uu]nable) to (?:dlopen|load (?:library|any of)) '?(?P<fail>\S+)"
        r"|Cannot load symbol (?P<symbol>\S+)|DLL load failed|Library not loaded: (?P<mac>\S+)"
        r"|(?P<none>lib\w[\w.+-]*\.so[\d.]*)'? (?:was |is )?(?:not|cannot|could not be) (?:found"
        r"|loaded|find)|CUDA Setup failed despite",
        "The library {what} was not found.",
        "Load the module that provides it, or use an image that has it; in a container, bind its "
        "folder and add it to LD_LIBRARY_PATH.",
    ),
    _rule(
        "installation-changed",
        r"(?:[Nn]o such file or directory|FileNotFoundError|[Cc]an't open file)[^/]{0,40}"
        r"(?P<what>/[^\s'\"]*/(?:site|dist)-packages/[^\s'\":]+)",
        "The job's Python installation is incomplete, or changed during the job: {what}.",
        "Run it again. If it fails again, reinstall the package, or choose another image.",
    ),
    _rule(
        "no-module",
        r"^\s*(?:[\w.]+: )?(?:ModuleNotFoundError|ImportError): No module named"
        rf"(?! '?(?:{KNOWN})\.(?!distributed\.run|_C)) '?(?P<what>[\w.]+)"
        r"|python[\d.]*: (?:No module named"
        r"|Error while finding module specification for) '?(?P<run>[\w.]+)"
        r"|ImportError: (?P<need>[^<>=]{1,60}) (?:is|are) (?:not installed|required|needed)"
        r"|package (?P<seems>\w+) seems to be not installed|^Error: No module named (?P<error>\S+)"
        r"|packages that were not found in your environment: (?P<found>[\w, .-]+)"
        r"|requires the (?P<lib>\S+) library but it was not found"
        r"|PackageNotFoundError: .*'?(?P<p>\w+)"
        r"|^(?!.*incompatible).*[Pp]lease (?:pip )?install [`'\"]?(?P<install>[\w-]+)"
        r"|__path__ attribute not found on '(?P<attr>[\w.]+)"
        r"|[Uu]nable to import (?:package|module|required dependenc\w+:?) '?(?P<unable>[\w.]+)"
        r"|ImportError: (?!Using |.*[<>=]=).*`?pip install (?P<pip>[\w-]+)",
        "Python cannot find the module {what} in the ranks' environment.",
        "List its package under `venv:` in the job file, or send the module with the project.",
    ),
    _rule(
        "package-version",
        r"ImportError: cannot import name (?P<what>\S+ from \S+)"
        r"|ImportError: cannot import name (?P<name>\S+)"
        r"|module '(?P<module>[\w.]+)' has no attribute '\w+'"
        r"|(?P<need>\S+ ?[<>=!~]=? ?[\d.]+\S*) is required|VersionConflict|DistributionNotFound"
        r"|ImportError: (?P<want>.{1,60} requires .{0,20}[<>=]=? ?[\d.]+)"
        r"|Using `[^`]+` requires (?P<using>.+)|Weights only load failed|WeightsUnpickler error"
        r"|(?P<api>(?:TrainingArguments|\w*Trainer|\w+Config)\.__init__\(\) got an unexpected .+)"
        r"|model type `(?P<type>[^`]+)` but Transformers does not recognize"
        rf"|No module named '?(?P<part>(?:{KNOWN})\.[\w.]+)"
        r"|^cannot import name (?P<bare>\S+ from \S+)"
        r"|requires a different Python: (?P<python>.+)|ResolutionImpossible"
        r"|(?P<resolver>\S+ \S+ requires \S+, but you have .+)|which is incompatible"
        r"|future feature \w+ is not defined|(?P<used>\S+ is used but incompatible)"
        r"|(?P<newer>[\w-]+ requires \w+ [\d.]+ or (?:higher|newer|later))"
        r"|(?P<atleast>(?:requires|needs) (?:at least )?(?:torch|PyTorch|transformers|python"
        r"|Python|CUDA)\S* ?(?:version )?[<>=]*=? ?\d[\d.]+)"
        r"|(?P<both>(?i:version\b.{0,60}\b(?:is|are) (?:not compatible|incompatible)).*)"
        r"|(?P<old>unsupported operand type\(s\) for \|: 'type'"
        r"|mutable default .{1,80} is not allowed: use default_factory)"
        r"|(?P<renamed>unexpected keyword argument '(?:gpus|evaluation_strategy|eval_strategy"
        r"|num_items_in_batch|use_auth_token|dispatch_batches|use_seedable_sampler|cache_position"
        r"|processing_class|evaluate_during_training|auto_select_gpus|resume_from_checkpoint"
        r"|progress_bar_refresh_rate|torch_dtype|keep_torch_compile|weights_summary"
        r"|checkpoint_callback)')",
        "Versions of Python packages are incompatible ({what}).",
        "In `venv:`, pin the versions that the program was written for, or update the program.",
    ),
)
"""Errors of imports and libraries."""

IMPORTS = ("no-library", "no-module", "package-version")
"""The causes that a failed import may have."""
NAME = re.compile(
    r"No module named '?(?P<module>\w+(?:\.\w+)*\b)(?<!\._C)"
    r"|cannot import name '?(?P<name>\w+)'? from '?(?P<of>[\w.]+)"
    r"|module '(?P<owner>[\w.]+)' has no attribute '(?P<attribute>\w+)'"
)
"""The name that Python did not find, with what should have it."""
MISSPELLED = (
    "The name {name} is misspelled, or missing in the job's environment.",
    "Check its spelling{near} at {place}. If it is right: ",
)
"""What precedes the fix of a failed import if the program's own line has the name."""
IMPORT_OF_ONE = Meaning(
    "import-of-one-rank",
    "One rank could not import what the other ranks imported: the file system or the installation "
    "on its node may be at fault.",
    "Submit it again. If an import fails on the same node again, exclude the node "
    "(`sbatch: [--exclude=NODE]`).",
)
