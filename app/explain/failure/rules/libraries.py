"""What lines say of modules and libraries that are missing, do not fit or cannot be built."""

from lumitui.app.explain.failure.rules.row import LogRule
from lumitui.app.explain.failure.rules.row import log_rule as _rule

LIBRARIES: tuple[LogRule, ...] = (
    _rule(
        "jit-build",
        r"Error building extension '|ninja: (?:build stopped|error)|'ninja', '-v'\]' returned"
        r"|Ninja is required|Unable to JIT load|Error compiling objects for extension"
        r"|CUDA_HOME (?:environment variable is not set|does not exist)|CUDAMismatchException"
        r"|MissingCUDAException|nvcc fatal|\bnvcc(?:'|: (?:command )?not found)|hipcc: not found"
        r"|unsupported GNU version|[Ff]ailed to find C compiler|No such file or directory: ':?/\S*"
        r"bin/nvcc'|CalledProcessError: Command '\[?'?\S*(?:gcc|g\+\+|cc|clang\S*|ninja|nvcc|hipcc"
        r"|ptxas)\b|fatal error: \S+\.(?:h|hpp|cuh): No such file|cannot find -l\w+|collect2: error"
        r"|ld returned \d exit status|BackendCompilerFailed|torch\._dynamo\.exc\.\w+"
        r"|InductorError|torch\._inductor\.exc\.|LoweringException"
        r"|triton\.(?:compiler|runtime)\.\S*(?:CompilationError|OutOfResources|Error)"
        r"|\[Errno 2\] .*/\.?(?:triton|torchinductor_\w+|torch_extensions)/.*\.(?:tmp|so|hsaco"
        r"|cubin)"
        r"|[Cc]annot find a working triton|out of resource: shared memory|Triton Error"
        r"|^LLVM ERROR: (?!out of memory)|ptxas (?:fatal|"
        r"error|fails)|error: command '\S*(?:gcc|g\+\+|nvcc|hipcc|ninja)\S*' failed"
        r"|CUDA version .{0,30}mismatches the version|Failed building wheel for",
        "Code could not be compiled when the program started: an extension, Triton's kernels or "
        "torch.compile.",
        "Build it in the environment beforehand (DS_BUILD_OPS=1), with the image's own compiler; "
        "or run without torch.compile.",
    ),
    _rule(
        "library-abi",
        r"undefined symbol: |version `?'?(?:GLIBC|GLIBCXX|CXXABI)_[\d.]+'? (?:not found|required)"
        r"|symbol lookup error|numpy\.\S*dtype size changed|binary incompatibility"
        r"|_ARRAY_API not found|multiarray failed to import|compiled using NumPy 1"
        r"|operator torchvision::\w+ does not exist|torchvision has CUDA Version="
        r"|PyTorch and torchvision were compiled with different|compiled against (?:API"
        r"|ABI) version"
        r"|undefined reference to|incompatible (?:ABI|with this Python)|ABI mismatch"
        r"|header version .{0,40}library version|libtorch\w*\.so.{0,60}(?:undefined|incompatible)"
        r"|Symbol not found|symbol \S+,? version \S+ not defined in file|relocation error: "
        r"|HDF5 library version mismatched|Descriptors cannot (?:not )?be created",
        "A library was built for another version of PyTorch or of the system.",
        "Build it in the image in which it runs, or take the wheel for that version of PyTorch.",
    ),
    _rule(
        "no-library",
        r"(?:ImportError|OSError"
        r"|RuntimeError): (?:.{0,120}: )?(?P<what>[\w.+-]+\.so[\d.]*): cannot "
        r"open shared object|error while loading shared libraries: (?P<load>[^:\s]+)"
        r"|(?:Could not|[Uu]nable to|cannot) (?:load|dlopen"
        r"|find) (?:the )?(?:dynamic )?(?:shared )?"
        r"library:? '?(?P<lib>[\w.+/-]+)|dlopen(?:: |\()(?P<dl>\S+)[:,].{0,60}(?:cannot|fail)"
        r"|a shared library is likely missing"
        r"|(?P<any>lib[\w.+-]+\.so[\d.]*): cannot open shared object file",
        "The library {what} was not found.",
        "Load the module that has it or use an image with it; in a container, bind its folder and "
        "add it to LD_LIBRARY_PATH.",
    ),
    _rule(
        "no-module",
        r"^\s*(?:[\w.]+: )?(?:ModuleNotFoundError|ImportError): No module named '?(?P<what>[\w.]+)"
        r"|python[\d.]*: (?:No module named|Error while finding module specification for) '?"
        r"(?P<run>[\w.]+)|ImportError: (?P<need>[^<>=]{1,60}) (?:is|are) (?:not"
        r" installed|required|needed)|package (?P<seems>\w+) seems to be not installed"
        r"|^Error: No module named (?P<error>\S+)"
        r"|packages that were not found in your environment: (?P<found>[\w, .-]+)"
        r"|requires the (?P<lib>\S+) library but it was not found"
        r"|PackageNotFoundError: .*'?(?P<p>\w+)"
        r"|[Pp]lease (?:pip )?install [`'\"]?(?P<install>[\w-]+)",
        "Python cannot find the module {what} where the ranks run.",
        "Install it in the environment of `container: {venv: …}`, or ship it with the project.",
    ),
    _rule(
        "package-version",
        r"ImportError: cannot import name (?P<what>\S+ from \S+)|ImportError: cannot import name "
        r"(?P<name>\S+)|module '(?P<module>[\w.]+)' has no attribute '\w+'"
        r"|(?P<need>\S+ ?[<>=!~]=? ?[\d.]+\S*) is required|VersionConflict|DistributionNotFound"
        r"|ImportError: (?P<want>.{1,60} requires .{0,20}[<>=]=? ?[\d.]+)|Using `[^`]+` requires "
        r"(?P<using>.+)|Weights only load failed|WeightsUnpickler error"
        r"|(?P<api>(?:TrainingArguments|\w*Trainer|\w+Config)\.__init__\(\) got an unexpected .+)"
        r"|model type `(?P<type>[^`]+)` but Transformers does not recognize",
        "Versions of Python packages do not fit each other ({what}).",
        "Pin the versions that the program was written for in `venv:`, or update the program.",
    ),
)
"""What is imported or loaded."""
