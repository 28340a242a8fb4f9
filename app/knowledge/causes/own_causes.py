"""Meanings of the job script's own lines, and of torchrun's about its binding."""

from lumitui.app.knowledge.causes.meanings import LogRule
from lumitui.app.knowledge.causes.meanings import log_rule as _rule

OWN: tuple[LogRule, ...] = (
    _rule(
        "numa-binding",
        r"Must bind to a non-empty set of CPU indices",
        "torchrun's --numa-binding found none of the job's cores near a GPU.",
        "Use whole nodes (`exclusive: true` on a shared partition), or `binding: none`.",
    ),
    _rule(
        "proof-strict",
        r"lumitui: (?P<what>local rank \d+ has its cores \S+ on \d+ of \d+ nodes"
        r"|rank \d+ is local rank \d+, planned \d+"
        r"|not all ranks see the same GPUs|all ranks see the GPUs [\d,]+, not in order"
        r"|the driver shows local rank \d+ (?:its )?GPU[\w.: ]* on \d+ of \d+ nodes)"
        r"; nothing was launched",
        "The binding is not proven ({what}), so `proof: strict` ended the job.",
        "Read the proof; use whole nodes, or `proof: on` to run anyway.",
    ),
    _rule(
        "preflight",
        r"lumitui: preflight: (?P<what>.+); nothing was launched\.",
        "The preflight found {what}, so `preflight: end` ended the job.",
        "Resubmit it without that node (`sbatch: [--exclude=NODE]`), and tell the site's support; "
        "or use `preflight: warn` to run anyway.",
    ),
    _rule(
        "venv-build",
        r"lumitui: the environment could not be built: (?P<what>.+)",
        "The environment of `venv:` could not be built: {what}.",
        "Correct `venv:`; venv.log in the run's folder contains pip's full output.",
    ),
    _rule(
        "second-job",
        r"lumitui: attempt \d+ belongs to job (?P<what>\d+)",
        "This was a second job for the same run and exited immediately; the run belongs to job "
        "{what}.",
        "You need do nothing.",
    ),
)
"""Jobs that lumitui itself ended, and its own failures."""
