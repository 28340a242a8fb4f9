"""Which environment variables a job file may set: not the launch's own, and no secrets."""

import re

# The whole word at the end of a part of a name: HF_TOKEN and APIKEY, not TOKENIZERS_PARALLELISM.
_SECRET = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD)S?(?:_|$)", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LAUNCH = frozenset(
    {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
    | {"RUN_DIR", "SRUN_CPUS_PER_TASK", "PET_LOCAL_ADDR", "PET_SIGNALS_TO_HANDLE"}
    | {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT"}
)
# Variables of job.sh and lumitui.sh, besides those in small letters: they need their own values.
_SCRIPT = frozenset(
    {"CODE", "CPU_BIND_MASKS", "NODE_TMP", "PROOF_DIR", "SIF", "VENV", "VIRTUAL_ENV"}
)
_SMALL = re.compile(r"[a-z]+")
# bash gives these a value of its own, or ends at once when they are set (bash(1)).
_SHELL = frozenset(
    {"BASHOPTS", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID", "BASHPID", "BASH_COMMAND"}
    | {"DIRSTACK", "EPOCHREALTIME", "EPOCHSECONDS", "FUNCNAME", "GROUPS", "HISTCMD", "LINENO"}
    | {"OLDPWD", "PWD", "RANDOM", "SECONDS", "SHLVL", "SRANDOM", "_"}
)


def is_taken(name: str) -> bool:
    """Return whether the launch, the job script or its shell uses the variable `name`."""
    return name in _LAUNCH | _SCRIPT | _SHELL or _SMALL.fullmatch(name) is not None


def check_environment_name(name: str) -> None:
    """Raise ValueError when a job file's `env:` may not set the variable `name`."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a variable's name")
    if _SECRET.search(name):
        raise ValueError(
            f"{name} looks like a secret; list its name under `secrets:` "
            "and set it in the laptop's environment"
        )
    if name in _LAUNCH:
        raise ValueError(f"{name} is set by the launch itself; remove it")
    _check_free(name)


def check_secret_name(name: str) -> None:
    """Raise ValueError when `secrets:` may not hold `name`, without repeating a pasted value."""
    if not _NAME.fullmatch(name):
        raise ValueError("an entry is not a variable's name; give names, never values")
    _check_free(name)


def _check_free(name: str) -> None:
    if is_taken(name):
        raise ValueError(f"{name} belongs to the job script or its shell; use another name")
