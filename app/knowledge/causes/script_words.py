"""Fixes in the words of an sbatch script, for the log of a job without a job file. Pure."""

import re

_WORDS = (
    (r" \(`sbatch: \[(--exclude=NODE)\]`\)", r" (`\1`)"),
    (r"`sbatch: \[(--exclude=NODE)\]`", r"`\1`"),
    (r"; the site's profile sets what .+", "."),
    (r" from `env:`", " from the script"),
    (r" in `env:`", ""),
    (r"with more `time:`", "with a longer `--time`"),
    (r"`memory:`", "memory (`--mem`)"),
    (r"`exclusive: true`( on a shared partition)?", r"`--exclusive`\1"),
    (r", or `binding: (none|auto)`", ""),
    (r" In a job file, use `binding: auto`\.", ""),
    (r"`strategy: zero2` or `zero3`", "FSDP or DeepSpeed"),
    (r"List its package under `venv:` in the job file, or send the module with the project\.",
     "Install its package in the job's environment, or add the module's folder to PYTHONPATH."),
    (r"In `venv:`, pin", "Pin"),
    (r"packages in `venv:`, `activate:` or home", "packages in a virtual environment or home"),
    (r"`container: \{venv: …\}`, or write", "an existing environment, and write"),
    (r"`container: \{image: …\}`", "its path"),
    (r"`container: \{binds: …\}`", "its binds"),
    (r"`modules:` in the job file and in the site's profile", "the modules that the script loads"),
    (r"(?:usually )?in `args:`", "usually in the program's arguments"),
    (r"Correct the job file", "Correct the script"),
    (r"`args:`", "the program's arguments"),
    (r"a `launcher:`", "a launcher"),
    (r"with `secrets: \[HF_TOKEN\]`", "in HF_TOKEN"),
    (r"upload it with `stage: .+", "copy it to the site."),
    (r"relative to `workdir:` in the run's copy of the project, or use `links:`",
     "relative to the folder in which the job starts, or absolute"),
    (r"; give DeepSpeed's configuration as .+", "."),
)  # fmt: skip
"""Patterns of the fixes that name keys of a job file, and what to write instead."""


def in_script_words(do: str) -> str:
    """Return a fix with options of sbatch instead of keys of a job file."""
    for pattern, words in _WORDS:
        do = re.sub(pattern, words, do)
    return do
