"""What lines of Singularity, Apptainer, pyxis and enroot mean, and of environments in general."""

from lumitui.app.explain.failure.rules.row import LogRule
from lumitui.app.explain.failure.rules.row import log_rule as _rule

CONTAINERS: tuple[LogRule, ...] = (
    _rule(
        "no-scontrol",
        r"\bscontrol: (?:command )?not found|\[Errno 2\].*'scontrol'",
        "The program asks Slurm's scontrol, which is not in the container.",
        "Read MASTER_ADDR and MASTER_PORT, which the job script sets before the container starts.",
    ),
    _rule(
        "line-endings",
        r"bad interpreter: .*\^M|\$'\\r': command not found|/bin/(?:ba)?sh\^M"
        r"|(?:#!/bin/(?:ba)?sh|[Bb]atch script).*DOS line breaks",
        "A script has the line endings of Windows.",
        "Convert it: `sed -i 's/\\r$//' SCRIPT`.",
    ),
    _rule(
        "script-assignment",
        r": line \d+: (?P<what>[A-Z][A-Z0-9_]*): command not found",
        "Bash took {what} for a command: there is a space before its `=`.",
        "Write NAME=value, without spaces around `=`.",
    ),
    _rule(
        "script-syntax",
        r": line (?P<what>\d+: (?:syntax error|unexpected EOF while looking).+)"
        r"|: (?P<other>syntax error: unexpected end of file)",
        "Bash cannot read the job's script: line {what}.",
        "Look above that line for a quote, bracket, `if` or `do` that is not closed; "
        "`bash -n SCRIPT` says the same before the job waits.",
    ),
    _rule(
        "no-environment",
        r"not been properly configured to use 'conda activate'|[Rr]un 'conda init' before"
        r"|Could not find conda environment|EnvironmentNameNotFound|EnvironmentLocationNotFound"
        r"|Not a conda environment"
        r"|/bin/activate: No such file",
        "The Python environment could not be activated.",
        "Use `container: {venv: …}`, or write the environment's whole path.",
    ),
    _rule(
        "no-command",
        r": exec: (?P<what>[^\s:]+): (?:command )?not found"
        r"|^(?:/usr/bin/)?env: ['\u2018]?(?P<shebang>[^'\u2019:]+)['\u2019]?: No such file"
        r"|error: execve\(\): (?P<path>[^\s:]+): No such file"
        r"|\"(?P<quoted>[^\"\\]+)\\?\": (?:executable file not found|stat )"
        r"|no executable (?P<none>\S+) found|srun: fatal: Can not execute (?P<fatal>\S+)"
        r"|mpirun was unable to find the specified (?P<mpi>executable)"
        r"|\b(?P<main>python[\d.]*|torchrun|deepspeed|accelerate|srun|mpirun|mpiexec|singularity"
        r"|apptainer|enroot|colossalai|conda): (?:command )?not found"
        r"|bad interpreter: No such file",
        "The program {what} was not found.",
        "Check the container and the name of the interpreter; load the module that has it.",
    ),
    _rule(
        "architecture",
        r"(?P<what>\S+): (?:cannot execute binary file: )?Exec format error"
        r"|(?P<other>\S+): cannot execute binary file"
        r"|(?P<image>the image's architecture \(\w+\)) could not run on the host's \(\w+\)"
        r"|(?P<cpu>Illegal instruction)\b"
        r"|Errno 8\] Exec format error: (?P<os>\S+)",
        "The program is built for other processors than the nodes have ({what}).",
        "Build it on a login host with the nodes' processors, or choose an image for them.",
    ),
    _rule(
        "no-image",
        r"^FATAL: {2,3}(?:.*: )?could not open image (?P<what>[^\s:]+)"
        r"|FATAL: .*(?:no such file or directory|[Ii]mage (?:file )?(?:not found|does not exist))"
        r".*\.s(?:if|img|qsh)|image path (?P<path>\S+) (?:does not|doesn't) exist"
        r"|(?P<pull>FATAL: .*(?:[Uu]nable to (?:handle|pull)|manifest unknown|reading manifest).*)"
        r"|No such file or directory: (?P<squash>\S+\.sqsh)",
        "The container image {what} cannot be opened.",
        "Check `container: {image: …}`; the site's own images change names over time.",
    ),
    _rule(
        "container-command",
        r"^FATAL: {2,3}(?:\S+: )?permission denied|^FATAL: .*exec .* failed: permission denied",
        "The container was asked to run something that is not a program.",
        "Check that the interpreter comes before the script, and that the image's path is right.",
    ),
    _rule(
        "container",
        r"^FATAL(?:: {2,3}| +\[U=[^\]]*\] +\w+\(\) +)(?P<what>.+)"
        r"|(?P<said>container creation failed: .+)"
        r"|pyxis: (?P<pyxis>couldn't start container.*|container start failed.*|seccomp .+"
        r"|.*failed to .+)"
        r"|(?P<mount>enroot-mount: .+|.*mount source \S+ (?:doesn't|does not) exist.*)"
        r"|^ERROR +: (?P<setuid>Failed to (?:create user namespace|set effective UID).*)"
        r"|^ABORT: .*Retval|docker: Error response from daemon: (?P<docker>.+)",
        "The container did not start: {what}.",
        "Check the image and `container: {binds: …}`; sources of binds must exist on the site.",
    ),
    _rule(
        "no-environment-module",
        r"following module\(s\) are unknown: (?P<what>.+)"
        r"|Unable to locate a modulefile for (?P<name>.+)"
        r"|These module\(s\) or extension\(s\) exist but cannot be loaded as requested: (?P<not>.+)"
        r"|Lmod has detected the following error: (?P<lmod>.*)"
        r"|(?P<lua>following module\(s\) cannot be loaded.*)",
        "An environment module does not exist, or cannot be loaded ({what}).",
        "Check the site's profile: the module may have been renamed, removed, or need another one "
        "first (`module spider NAME`).",
    ),
)
"""From the job script to the program: shells, modules, environments and containers."""
