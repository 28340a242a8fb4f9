"""Write templates/model_memory.yaml: what the bundled models keep in memory for a step.

`PYTHONPATH=src:. .venv/bin/python -m tests.measure.model_memory` writes it anew, in a minute.
Nothing is computed: a forward and a backward pass run on tensors without memory, and the bytes of
those that live are counted. In a table since a laptop with lumitui need not have PyTorch.
"""

import sys
import weakref
from contextlib import nullcontext
from importlib import import_module
from operator import ge
from pathlib import Path
from typing import Any

import torch
import yaml
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tests.support.places import ROOT, TRAINERS

TABLE = ROOT / "templates" / "model_memory.yaml"
_HEAD = """\
# What the bundled models keep in a rank's memory for a step, in bytes: fixed, and of a sample.
# Written by `python -m tests.measure.model_memory`, from passes over tensors without memory.
#   weights: their number; outside: outside the repeated blocks; block: in the largest block
#   input: bytes of a sample
# For each precision, without --recompute and with each of its values ("bf16 weights": as fsdp
# gathers them, so that autocast copies none):
#   most: what lives besides weights and gradients, at its most
#   growing: the same with the gradients that have come by then, if more than `most`; a single rank
#     begins with none
#   inner: `most` while the gradients of blocks come, in the rows that fsdp reads
"""


class Living(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of the tensors made inside that live."""

    def __init__(self, weights: list[nn.Parameter], blocks: set[int]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._sizes: dict[int, int] = {}
        self._blocks = blocks
        self.now = self.gradients = 0
        self.most = self.growing = self.inner = 0
        for weight in weights:
            weight.register_post_accumulate_grad_hook(self._came)  # type: ignore[no-untyped-call]

    def leave_out(self, tensors: list[Tensor]) -> None:
        """Do not count these."""
        for tensor in tensors:
            self._sizes[tensor.untyped_storage()._cdata] = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, Tensor):
                self._add(tensor.untyped_storage())
        return out

    def _add(self, storage: torch.UntypedStorage) -> None:
        place = storage._cdata
        if place in self._sizes:
            return
        self._sizes[place] = storage.nbytes()
        self.now += storage.nbytes()
        self.most = max(self.most, self.now)
        self.growing = max(self.growing, self.now + self.gradients)
        weakref.finalize(storage, self._drop, place)

    def _drop(self, place: int) -> None:
        self.now -= self._sizes.pop(place, 0)

    def _came(self, weight: Tensor) -> None:
        """A gradient is kept from here on: it counts as such."""
        assert weight.grad is not None
        if id(weight) in self._blocks:
            self.inner = max(self.inner, self.now)
        self._drop(weight.grad.untyped_storage()._cdata)
        self.gradients += weight.grad.nbytes
        self.growing = max(self.growing, self.now + self.gradients)


def _built(model: str) -> tuple[Any, nn.Module]:
    """Return a model's row in the trainers' table, and the model without memory."""
    module = import_module("models.table")
    row = module.MODELS[model]
    with torch.device("meta"):
        net: nn.Module = module.build(model, row.sample, 0)
    return row, net


def _pass(model: str, batch: int, precision: str, recompute: str) -> list[int]:
    """Return most, growing and inner of a step of `batch` samples."""
    blocks = import_module("strategies.pytorch")
    row, net = _built(model)
    precision, _, weights = precision.partition(" ")
    if weights:
        net = net.to(torch.bfloat16)
    with FakeTensorMode(allow_non_fake_inputs=True):
        net = net.to_empty(device="cpu")
        if recompute:
            blocks.recompute(net, model, recompute)
        text = row.sample.kind == "tokens"
        shape = (batch, *row.sample.input)
        inputs = torch.zeros(shape, dtype=torch.int64 if text else torch.float32)
        targets = torch.zeros(shape if text else (batch,), dtype=torch.int64)
        inside = {id(one) for part in blocks.blocks(net, model) for one in part.parameters()}
        living = Living(list(net.parameters()), inside)
        living.leave_out([*net.parameters(), *net.buffers(), inputs, targets])
        dtype = import_module("strategies.pytorch").PRECISIONS[precision]

        task = import_module("engine.training").TASKS[row.task]
        passes = blocks.WithLoss(net, task.loss, 1)

        def forward() -> Tensor:
            with torch.autocast("cpu", dtype) if dtype else nullcontext():
                loss: Tensor = passes(inputs, targets)
            return loss

        with living:  # nothing here holds what the loop does not hold
            forward().backward()  # type: ignore[no-untyped-call]
    return [living.most, living.growing, living.inner]


def row_of(model: str) -> dict[str, Any]:
    """Return a model's row of the table."""
    size = import_module("models.table").size
    of, net = _built(model)
    parts = [size(part) for part in import_module("strategies.pytorch").blocks(net, model)]
    text = of.sample.kind == "tokens"
    places = torch.Size(of.sample.input).numel()
    row: dict[str, Any] = {
        "weights": size(net),
        "outside": size(net) - sum(parts),
        "block": max(parts, default=0),
        "input": 8 * places if text else 4 * places,
        "passes": {},
    }
    # fsdp gathers the weights of a model with batch norm in float32.
    normed = any(isinstance(module, _BatchNorm) for module in net.modules())
    for precision in ("fp32", "bf16", *(("bf16 weights",) if parts and not normed else ())):
        for recompute in ("", "all", "selective") if parts else ("",):
            two, four = (_pass(model, batch, precision, recompute) for batch in (2, 4))
            lines = {}
            for name, at_two, at_four in zip(("most", "growing", "inner"), two, four, strict=True):
                slope = (at_four - at_two) // 2
                lines[name] = [max(0, at_two - 2 * slope), slope]
            if precision == "bf16 weights" or all(map(ge, lines["most"], lines["growing"])):
                del lines["growing"]
            if precision == "bf16" and parts and not normed:
                del lines["inner"]
            row["passes"][f"{precision}, {recompute}" if recompute else precision] = lines
    return row


def table(models: list[str]) -> dict[str, dict[str, Any]]:
    """Return the rows of these models."""
    return {model: row_of(model) for model in models}


def main() -> None:
    """Write the table of all models."""
    sys.path.insert(0, str(TRAINERS))
    models = list(import_module("models.table").MODELS)
    rows = yaml.safe_dump(table(models), sort_keys=False, default_flow_style=None, width=110)
    Path(TABLE).write_text(_HEAD + rows, encoding="utf-8")


if __name__ == "__main__":
    main()
