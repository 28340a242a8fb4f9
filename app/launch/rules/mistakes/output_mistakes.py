"""The message about a grid whose runs all write to one place. Pure."""

import re
from collections.abc import Iterator

from lumitui.app.job.grid import Cell
from lumitui.app.job.spec import JobSpec
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.source_position import at_key

_OUTPUT = re.compile(
    r"(?:out|output|outdir|save|ckpts?|checkpoints?|results?|logs?|logdir|savedir|work|run|exp|"
    r"experiment|log|tensorboard)(?:-?(?:dir|path|folder|file|root|to|directory|prefix))?"
)
_OF_A_RUN = re.compile(r"\$\{?(?:RUN_DIR|SLURM_JOB_ID|SLURM_ARRAY|NODE_TMP)|^/tmp|^/dev/shm")


def shared_outputs(cells: tuple[Cell, ...]) -> tuple[Finding, ...]:
    """Return what there is to say of the outputs of a grid's runs."""
    first = cells[0].spec
    own = {key for key, _value in cells[0].settings}
    if len(cells) < 2:
        return ()
    return tuple(
        Finding(
            "grid-output",
            "warning",
            f"All {len(cells)} runs of the grid write to one place, {name} {value}: each "
            "overwrites what the others wrote.",
            f"Leave {name} out, and let the program write to $RUN_DIR, which is each run's own.",
            "docs/scripts.md",
            at=at_key("args"),
        )
        for name, value in _outputs(first)
        if name not in own
    )


def _outputs(spec: JobSpec) -> Iterator[tuple[str, str]]:
    """Yield the arguments that name a place on the site that is not the run's own."""
    for number, word in enumerate(spec.args):
        name, equals, value = word.partition("=")
        following = spec.args[number + 1] if number + 1 < len(spec.args) else ""
        value = value if equals else following
        plain = name.lstrip("-").replace("_", "-").lower()
        shared = value.startswith(("/", "$")) and not _OF_A_RUN.search(value)
        if name.startswith("-") and _OUTPUT.fullmatch(plain) and shared:
            yield name, value
