"""Which environment variables a job file may set: not the launch's own, and no secrets."""

import re

# Words that end a part of a name: HF_TOKEN and APIKEY match, TOKENIZERS_PARALLELISM does not.
_SECRET = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD)S?(?:_|$)", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LAUNCH = frozenset(
    {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
    | {"RUN_DIR", "SRUN_CPUS_PER_TASK", "PET_LOCAL_ADDR", "PET_SIGNALS_TO_HANDLE"}
    | {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT"}
)
# Variables of job.sh and lumitui.sh, which also use all names in small letters.
_SCRIPT = frozenset(
    {"CODE", "CPU_BIND_MASKS", "NODE_TMP", "PROOF_DIR", "SIF", "VENV", "VIRTUAL_ENV"}
)
_SMALL = re.compile(r"[a-z]+")
# bash sets these itself, or ends at once if a job sets them (bash(1)).
_SHELL = frozenset(
    {"BASHOPTS", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID", "BASHPID", "BASH_COMMAND"}
    | {"DIRSTACK", "EPOCHREALTIME", "EPOCHSECONDS", "FUNCNAME", "GROUPS", "HISTCMD", "LINENO"}
    | {"OLDPWD", "PWD", "RANDOM", "SECONDS", "SHLVL", "SRANDOM", "_"}
)


def is_taken(name: str) -> bool:
    """Return whether the launch, the job script or its shell uses the variable `name`."""
    return name in _LAUNCH | _SCRIPT | _SHELL or _SMALL.fullmatch(name) is not None


def check_environment_name(name: str) -> None:
    """Raise ValueError if a job file's `env:` may not set the variable `name`."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a variable name")
    if _SECRET.search(name):
        raise ValueError(
            f"{name} looks like a secret; list its name under `secrets:` and set it in your "
            "laptop's environment"
        )
    if name in _LAUNCH:
        raise ValueError(f"the launch itself sets {name}; remove it")
    _check_free(name)


def check_secret_name(name: str) -> None:
    """Raise ValueError if `secrets:` may not list `name`; never repeat a pasted value."""
    if not _NAME.fullmatch(name):
        raise ValueError("an entry is not a variable name; give names, never values")
    _check_free(name)


def _check_free(name: str) -> None:
    if is_taken(name):
        raise ValueError(f"the job script or its shell uses {name}; use another name")
