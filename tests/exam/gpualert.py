"""How often the diagnosis names the right class of `gpualert-eval`, a public corpus of 474 logs.

`python -m tests.exam.gpualert FOLDER` scores a clone of it; nothing of its text is kept here.
Its classes are coarser than the causes in some places: `main memory` is two classes there, told
apart by who noticed, and an exception without a rule is one of three, told apart by its class.
"""

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel

from lumitui.app.knowledge.failure.diagnose import diagnose
from lumitui.app.knowledge.failure.diagnosis import Diagnosis, RunEnd
from lumitui.remote.site.states import State

_CLASSES = {
    "gpu-memory": "cuda_oom",
    "collective-timeout": "nccl",
    "network": "nccl",
    "rendezvous": "nccl",
    "peer-lost": "nccl",
    "gpu-assert": "cuda_runtime",
    "gpu-fault": "cuda_runtime",
    "gpu-library": "cuda_runtime",
    "gpu-hardware": "cuda_runtime",
    "killed-by-signal": "segfault",
    "segfault": "segfault",
    "no-file": "file_not_found",
    "permission": "permission",
    "no-module": "missing_module",
    "no-library": "missing_module",
    "division-by-zero": "div_zero",
    "device-mismatch": "device_mismatch",
    "numerics": "nan_loss",
    "killed": "oom_killer",
}
_KILLER = re.compile(r"(?i)kill")


class Row(BaseModel, frozen=True):
    """One log of the corpus, as its labels.jsonl has it."""

    mode: str
    log_path: str
    true_exit_code: int


def class_of(found: Diagnosis) -> str:
    """Return the corpus's class for a diagnosis."""
    if found.id == "host-memory":
        return "oom_killer" if _KILLER.search(found.line) else "ram_oom"
    # Where the corpus goes by the class of the exception, a cause in words refines it.
    if found.line.startswith("AssertionError") and found.id not in _CLASSES:
        return "assertion"
    if found.line.startswith("RuntimeError") and found.id not in _CLASSES:
        return "runtime_error"
    return _CLASSES.get(found.id, "traceback")


def answer(row: Row, folder: Path, *, with_code: bool) -> str:
    """Return the class that the diagnosis gives one log."""
    log = (folder / row.log_path).read_text(encoding="utf-8", errors="replace")
    code = row.true_exit_code
    rc = (128 - code if code < 0 else code) if with_code else None
    return class_of(diagnose(RunEnd(State.FAILED, rc=rc or None, log=log))[0])


def macro_f1(pairs: Sequence[tuple[str, str]]) -> float:
    """Return the mean over the classes of F1, of (true, answered) pairs."""
    classes = {true for true, _ in pairs}
    total = 0.0
    for one in classes:
        right = sum(true == given == one for true, given in pairs)
        total += 2 * right / sum((true == one) + (given == one) for true, given in pairs)
    return total / len(classes)


def main(folder: Path) -> None:
    """Print the scores, and each log that is named wrong."""
    labels = (folder / "corpus" / "labels.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [Row.model_validate(json.loads(line)) for line in labels]
    for with_code, name in ((True, "with the exit code"), (False, "from the log alone")):
        pairs = [(row.mode, answer(row, folder, with_code=with_code)) for row in rows]
        print(f"{name}: {len(pairs)} logs, macro-F1 {macro_f1(pairs):.4f}")
        for row, (true, given) in zip(rows, pairs, strict=True):
            if true != given:
                print(f"  {row.log_path}: {true}, answered {given}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
