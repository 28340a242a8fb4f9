"""Meanings of log lines from Singularity, Apptainer, pyxis, enroot and environments."""

from lumitui.app.knowledge.causes.meanings import LogRule
from lumitui.app.knowledge.causes.meanings import log_rule as _rule

CONTAINERS: tuple[LogRule, ...] = (
    _rule(
        "no-scontrol",
        r"\bscontrol: (?:command )?not found|\[Errno 2\].*'scontrol'",
        "The program calls Slurm's scontrol, which is not in the container.",
        "Read MASTER_ADDR and MASTER_PORT, which the job script sets before the container starts.",
    ),
    _rule(
        "line-endings",
        r"bad interpreter: .*\^M|\$'\\r': command not found|/bin/(?:ba)?sh\^M"
        r"|(?:#!/bin/(?:ba)?sh|[Bb]atch script).*DOS line breaks"
        r"|(?:bash|sh|python\d?)\\r['\u2019]?: No such file",
        "A script has Windows line endings.",
        "Convert it: `sed -i 's/\\r$//' SCRIPT`.",
    ),
    _rule(
        "script-assignment",
        r": line \d+: (?P<what>[A-Z][A-Z0-9_]*): command not found",
        "bash took {what} for a command: there is a space before its `=`.",
        "Write NAME=value, without spaces around `=`.",
    ),
    _rule(
        "script-syntax",
        r": line (?P<what>\d+: (?:syntax error|unexpected EOF while looking).+)"
        r"|: (?P<other>syntax error: unexpected end of file)",
        "bash cannot parse the job's script: line {what}.",
        "Check above that line for an unclosed quote, bracket, `if` or `do`; `bash -n SCRIPT` "
        "reports the same error before you submit.",
    ),
    _rule(
        "no-environment",
        r"not been properly configured to use 'conda activate'|[Rr]un 'conda init' before"
        r"|Could not find conda environment|EnvironmentNameNotFound|EnvironmentLocationNotFound"
        r"|Not a conda environment|/bin/activate: No such file"
        r"|[Cc]ould not find environment(?! variable)|(?:^|[\s:])(?:\S*/)?activate: [Nn]o such file"
        r"|[Nn]o such file or directory: \S*/activate\b",
        "The Python environment could not be activated.",
        "Use `container: {venv: …}`, or write the environment's full path.",
    ),
    _rule(
        "no-command",
        r": exec: (?P<what>[^\s:]+): (?:command )?not found"
        r"|^(?:/usr/bin/)?env: ['\u2018]?(?P<shebang>[^'\u2019:]+)['\u2019]?: No such file"
        r"|error: execve\(\): (?P<path>[^\s:]+): No such file"
        r"|^(?!.*(?:container creation failed"
        r"|while searching for)).*\"(?P<quoted>[^\"\\]+)\\?\": (?:executable file not found|stat )"
        r"|no executable (?P<none>\S+) found|srun: fatal: Can not execute (?P<fatal>\S+)"
        r"|mpirun was unable to find the specified (?P<mpi>executable)"
        r"|\b(?P<main>python[\d.]*|torchrun|deepspeed|accelerate|srun|mpirun|mpiexec|singularity"
        r"|apptainer|enroot|colossalai|conda): (?:command )?not found"
        r"|^(?!(?:ls|cat|cp|mv|rm|ln|stat|du|find|readlink)\b"
        r"|.*could not open image).*?(?P<at>[^\s:'\u2018\u2019]*"
        r"\b(?:python[\d.]*|torchrun|deepspeed|accelerate|mpirun|mpiexec|singularity|apptainer))"
        r"['\u2019]?: (?:cannot execute: )?[Nn]o such file or directory"
        r"|(?P<interpreter>[^\s:]+): bad interpreter: No such file"
        r"|No such file or directory: '(?P<run>(?:git|nvcc|sbatch|srun|squeue|sinfo|scontrol"
        r"|ffmpeg|ninja|nvidia-smi|rocm-smi|pdsh|ssh|mpirun|mpiexec|docker|singularity|apptainer"
        r"|gcc|g\+\+|java|make|cmake|conda|pip|wget|curl|aws|gsutil|taskset|numactl|hostname|which"
        r"|lscpu|ibstat))'|^(?:/bin/)?(?:sh|dash): (?:\d+: )?(?P<sh>[\w./-]+): not found"
        r"|zsh: command not found: (?P<zsh>\S+)|which: no (?P<which>\S+) in"
        r"|launcher '(?P<launcher>\w+)' not installed"
        r"|^(?:-?bash|-bash)?:? ?module: command not found",
        "The program {what} was not found.",
        "Check the container and the name of the interpreter; load the module that provides it.",
    ),
    _rule(
        "architecture",
        r"(?P<what>\S+): (?:cannot execute binary file: )?Exec format error"
        r"|(?P<other>\S+): cannot execute binary file"
        r"|(?P<image>the image's architecture \(\w+\)) could not run on the host's \(\w+\)"
        r"|(?P<cpu>Illegal instruction)\b|(?P<elf>wrong ELF class|[Ee]xec format error)"
        r"|(?P<avx>compiled to use \w+ instructions|processor supports? .{0,40}instructions)"
        r"|(?P<platform>platform \(\S+\) does not match the detected host)"
        r"|Errno 8\] Exec format error: (?P<os>\S+)",
        "The program was built for a different processor than the nodes have ({what}).",
        "Build it on a login host with the nodes' processors, or choose an image for them.",
    ),
    _rule(
        "no-image",
        r"\bFATAL: {2,3}(?:.*: )?could not open image (?P<what>[^\s:]+)"
        r"|FATAL: .*(?:no such file or directory|[Ii]mage (?:file )?(?:not found"
        r"|does not exist)).*\.s(?:if|img|qsh)|image path (?P<path>\S+) (?:does not|doesn't) exist"
        r"|(?P<pull>FATAL: .*(?:[Uu]nable to (?:handle|pull)|manifest unknown|reading manifest).*)"
        r"|No such file or directory: (?P<squash>\S+\.sqsh)"
        r"|(?P<built>FATAL: {2,3}.*(?:[Uu]nable to build from|image file).*(?:no such file"
        r"|not found|not exist).*)"
        r"|(?P<pyxis>pyxis: .*(?:failed to open\b.*image|image file does not exist).*)"
        r"|(?P<denied>pull access denied for \S+|manifest (?:for \S+ not found|unknown).*"
        r"|reading manifest .*)|(?P<name>invalid reference format)",
        "The container image {what} cannot be opened.",
        "Check `container: {image: …}`; the site's own images change names over time.",
    ),
    _rule(
        "container-command",
        r"^FATAL: {2,3}(?:\S+: )?permission denied|^FATAL: .*exec .* failed: permission denied",
        "The container tried to run something that is not a program.",
        "Check that the interpreter comes before the script, and that the image's path is right.",
    ),
    _rule(
        "container",
        r"(?:^|:-: )FATAL(?:: {2,3}| +\[U=[^\]]*\] +\w+\(\) +)(?P<what>.+)"
        r"|(?P<said>container creation failed: .+)"
        r"|pyxis: (?P<pyxis>couldn't start container.*|container start failed.*|seccomp .+"
        r"|.*failed to .+)"
        r"|(?P<mount>enroot-mount: .+|.*mount source \S+ (?:doesn't|does not) exist.*)"
        r"|^ERROR +: (?P<setuid>Failed to (?:create user namespace|set effective UID).*)"
        r"|^ABORT: .*Retval|^(?:ERROR|ABORT) +\[U=\d+,P=\d+\] +(?P<old>.+)"
        r"|docker: Error response from daemon: (?P<docker>.+)"
        r"|(?P<nvidia>nvidia-container-cli: .+|OCI runtime (?:error|create failed).*"
        r"|container_linux\.go.+|\bcrun: .+|newuidmap: .+|failed to solve: .+)"
        r"|(?P<loop>[Nn]o (?:more )?(?:available )?loop devices.*)|ch-run\[\d+\]: error: (?P<ch>.+)"
        r"|(?P<hpc>(?:shifter|sarus|podman-hpc)\w*: .*(?:[Ff]ail|[Ee]rror).*)"
        r"|pyxis: +\[ERROR\] (?P<hook>.+)",
        "The container did not start: {what}.",
        "Check the image and `container: {binds: …}`; sources of binds must exist on the site.",
    ),
    _rule(
        "no-environment-module",
        r"following module\(s\) are unknown: (?P<what>.+)"
        r"|Unable to locate a modulefile for (?P<name>.+)"
        r"|These module\(s\) or extension\(s\) exist but cannot be loaded as requested:"
        r" (?P<not>.+)|Lmod has detected the following error: (?P<lmod>.*)"
        r"|(?P<lua>following module\(s\) cannot be loaded.*)"
        r"|ERROR: Module (?P<tcl>\S+) (?:not found|cannot be found)|[Mm]odule ERROR: (?P<error>.+)"
        r"|(?i:(?:cannot|could not|unable to) load module) (?P<load>\S+)"
        r"|ModuleCmd_\w+\.c\(\d+\):ERROR:\d+: (?P<cmd>.+)",
        "An environment module does not exist, or cannot be loaded ({what}).",
        "Check `modules:` in the job file and in the site's profile: the module may have been "
        "renamed or removed, or may require another one first (`module spider NAME`).",
    ),
)
"""Errors between the job script and the program: shells, modules, environments, containers."""
