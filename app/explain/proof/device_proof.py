"""Each rank's GPU against its plan, by what the driver says where the rank runs. Pure."""

import re
from collections.abc import Sequence
from dataclasses import replace

from lumitui.app.explain.proof.rank_proof import RankProof
from lumitui.app.explain.words import ranks_named
from lumitui.app.job.launch import RankLayout

NONE = "none"
"""What the probe says where the driver is there and a rank may open none of its GPUs."""
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:([0-9a-f]{2}):[0-9a-f]{2}\.[0-7]")


def compare_devices(rows: Sequence[RankProof], layout: RankLayout) -> list[RankProof]:
    """Return `rows` with what is wrong with the GPUs that the driver shows each rank.

    A rank of an older probe, or one without a driver, is as it was: `unmeasured` tells of those.
    """
    if layout.on_cpu:
        return list(rows)
    owner: dict[tuple[str, str], int] = {}
    checked = []
    for row in rows:
        why = _wrong(row, layout) if row.ok and row.devices else ""
        if row.ok and row.device and not why:
            other = owner.setdefault((row.host, row.device), row.rank)
            why = f"its GPU {row.device} is also rank {other}'s" if other != row.rank else ""
        checked.append(replace(row, ok=False, why=why) if why else row)
    return checked


def unmeasured(rows: Sequence[RankProof], layout: RankLayout) -> str:
    """Return which ranks' devices nobody knows though GPUs were requested; "" where none.

    Reports of an older probe, which looked for none, are not judged by this.
    """
    probed = [row for row in rows if row.devices is not None]
    silent = [row.rank for row in probed if not row.devices]
    if layout.on_cpu or not silent:
        return ""
    who = "" if len(silent) == len(rows) else f" of {ranks_named(silent).lower()}"
    return f"Devices not measured: the driver said nothing of the GPUs{who}."


def _wrong(row: RankProof, layout: RankLayout) -> str:
    """Return what is wrong with the GPUs that the driver shows a rank."""
    if row.devices == NONE:
        return "it requested a GPU but sees none"
    seen = row.devices.split(",") if row.devices else []
    # One GPU means that each rank was given its own; rank_proof tells where only some were.
    alone = len(seen) == 1 and row.gpus.count(",") == 0 and row.gpus != ""
    if len(seen) < layout.gpus_per_node and not alone:
        return f"the driver shows it {len(seen)} GPUs, planned {layout.gpus_per_node}"
    planned = layout.gpu_bus[row.local_rank] if row.local_rank < len(layout.gpu_bus) else ""
    if planned and row.device and not is_bus(row.device, planned):
        return f"it sees GPU {row.device}, the plan says {planned}"
    return ""


def is_bus(address: str, planned: str) -> bool:
    """Return whether a PCI address, like 0000:c1:00.0, is the planned one, or has that bus (c1)."""
    if ":" in planned:
        return address == planned.lower()
    match = _ADDRESS.fullmatch(address)
    return match is not None and match[1] == planned.lower()


def brief(address: str) -> str:
    """Return a PCI address as lspci shortens it: without the domain 0000."""
    return address.removeprefix("0000:")
