"""How many parameters a model has, by its name, and what its training keeps in a GPU's memory.

Sources: ZeRO (arXiv 1910.02054, section 3): 16 bytes for each parameter with Adam in mixed
precision, and how the stages split them; fp32 with Adam takes as many (4 + 4 + 8).
"""

import re

_NAMED = re.compile(r"(?<![A-Za-z0-9.])(\d+(?:\.\d+)?)(?:x(\d+(?:\.\d+)?))?([bBmM])(?![A-Za-z0-9])")
# Parameters in millions, of models whose names do not say it (their cards on huggingface.co).
_KNOWN = {
    "gpt2": 124,
    "gpt2-medium": 355,
    "gpt2-large": 774,
    "gpt2-xl": 1558,
    "bert-base-uncased": 110,
    "bert-large-uncased": 340,
    "roberta-base": 125,
    "roberta-large": 355,
    "t5-base": 223,
    "t5-large": 738,
}
_STATES = 12  # bytes of a parameter's optimizer states: fp32 copy, mean, variance
_STATES_IN_16 = 4  # mean and variance alone, where the weights themselves have 16 bits
_GRADIENT = _WEIGHT = 2  # bytes, in 16 bits


def parameters(name: str) -> float | None:
    """Return a model's parameters in billions; None: its name does not say them.

    Experts in a name (`8x7B`) count as a whole, although they share some layers.
    """
    last = name.rstrip("/").rpartition("/")[2]
    if last.lower() in _KNOWN:
        return _KNOWN[last.lower()] / 1000
    found = _NAMED.search(last)
    if found is None:
        return None
    count = float(found[1]) * float(found[2] or 1)
    return count if found[3] in "bB" else count / 1000


def states_gib(
    billions: float,
    stage: int,
    ranks: int,
    *,
    optimizer_on_cpu: bool = False,
    all_in_16: bool = False,
) -> float:
    """Return the GiB of weights, gradients and Adam's states on each GPU at a ZeRO stage.

    Stage 0 is DDP. With `all_in_16` the model was loaded in 16 bits, and there is no copy in 32.
    Activations, buffers and the CUDA context come on top.
    """
    each = _STATES_IN_16 if all_in_16 else _STATES
    states = 0.0 if optimizer_on_cpu else each / (ranks if stage >= 1 else 1)
    gradients = _GRADIENT / (ranks if stage >= 2 else 1)
    weights = _WEIGHT / (ranks if stage >= 3 else 1)
    return billions * 1e9 * (states + gradients + weights) / 2**30
