"""What Slurm reports, compared with the profile: version, partitions, a node, accounts. Pure."""

import re
from collections.abc import Iterator, Mapping

from lumitui.remote.site import walltime
from lumitui.remote.site.answer_fields import count
from lumitui.remote.site.core_sets import format_cores, parse_cores
from lumitui.remote.site.profile import Site
from lumitui.remote.survey.doctor.check_result import Check, Status
from lumitui.remote.survey.slurm_records import gives_whole_nodes, records, reserved

_LONGEST_NAME = 200
"""Of an account: the profile's pattern is searched in no longer text."""


def version(text: str, site: Site) -> Iterator[Check]:
    """Check Slurm's version against the profile's: another release may behave differently."""
    found = text.split()[-1] if text.split() else ""
    if not re.match(r"\d+\.\d+", found):
        yield Check("Slurm", "failed", text.strip()[-200:] or "no answer", site.slurm_version)
    elif site.slurm_version and found.split(".")[:2] != site.slurm_version.split(".")[:2]:
        do = f"Set `slurm_version: {found}`, and check whether the site announced changes."
        yield Check("Slurm", "warning", found, site.slurm_version, do)
    else:
        yield Check("Slurm", "ok", found)


def partitions(text: str, site: Site) -> Iterator[Check]:
    """Check every partition of the profile against `scontrol show partition -o`."""
    found = {record.get("PartitionName"): record for record in records(text)}
    if not found:
        words = text.strip()[-200:] or "no answer"
        yield Check("partitions", "failed", words, "", "Try `scontrol show partition` there.")
        return
    for name, partition in site.partitions.items():
        qos = partition.slurm_partition  # of a QOS, Slurm's partition has only the outer limits
        record = found.get(qos or name)
        title = f"partition {name}"
        if record is None:
            known = ", ".join(sorted(filter(None, found)))
            wanted = f"{qos} was not found" if qos else "not found"
            yield Check(title, "failed", f"{wanted}; the site has {known}", "", f"Remove {name}.")
            continue
        allocation = "node" if gives_whole_nodes(record) else "shared"
        wrong = [
            (key, real, planned)
            for key, real, planned in (
                ("max_time", _limit(record.get("MaxTime", "")), partition.max_time),
                ("max_nodes", _most_nodes(record, partition.max_nodes), str(partition.max_nodes)),
                ("allocation", allocation, partition.allocation),
            )
            if not _same(key, real, planned) and not (qos and key.startswith("max_"))
        ]
        state = record.get("State", "UP")
        if wrong:
            yield Check(
                title,
                "warning",
                ", ".join(f"{key} {real}" for key, real, _ in wrong),
                ", ".join(f"{key} {planned}" for key, _, planned in wrong),
                f"Set them in your own profile, {site.name}.yaml (see docs/sites.md).",
            )
        elif state != "UP":
            yield Check(title, "warning", state, "UP", "Jobs wait until it is up again.")
        else:
            yield Check(title, "ok", f"{partition.max_time}, {partition.max_nodes} nodes")


def node(text: str, site: Site) -> Iterator[Check]:
    """Check the shape of one GPU node against `scontrol show node -o`."""
    found = records(text)
    if not found or "NodeName" not in found[0]:
        words = text.strip()[-200:] or "no answer"
        yield Check("node", "warning", words, "", "Try `scontrol show node` there.")
        return
    record, shape = found[0], site.node
    threads = count(record.get("ThreadsPerCore", "")) or 1
    gres = re.search(r"gpu:(?:[\w.-]+:)?(\d+)", record.get("Gres", ""))
    memory = (count(record.get("RealMemory", "")) or 0) / 1024
    rows: list[tuple[str, str, str]] = [
        ("gpus", gres[1] if gres else "0", str(shape.gpus)),
        ("cores", str((count(record.get("CPUTot", "")) or 0) // threads), str(shape.cores)),
        ("threads_per_core", str(threads), str(shape.threads_per_core)),
        ("memory_gib", f"{memory:g}", f"{shape.memory_gib:g}"),
    ]
    if kept := reserved(record.get("CPUSpecList", ""), shape.cores, threads):
        planned = format_cores(parse_cores(shape.reserved_cores))
        rows.append(("reserved_cores", format_cores(kept), planned))
    name = f"node {record['NodeName']}"
    wrong = [row for row in rows if row[1] != row[2]]
    if not wrong:
        yield Check(name, "ok", f"{shape.gpus} GPUs, {shape.cores} cores, {shape.memory_gib} GiB")
    for key, real, planned in wrong:
        # A profile may give less memory than the node has; giving more makes jobs wait for ever.
        roomy = key == "memory_gib" and float(real) > float(planned)
        status: Status = "ok" if roomy else "failed" if key in ("gpus", "cores") else "warning"
        do = "" if roomy else f"Set `node.{key}: {real}` in your own profile."
        yield Check(f"{name} {key}", status, real, planned, do)


def account_names(text: str) -> tuple[str, ...]:
    """Return the accounts that `sacctmgr show assoc` lists."""
    names = (line.partition("|")[0].strip() for line in text.splitlines())
    return tuple(dict.fromkeys(name for name in names if 0 < len(name) <= _LONGEST_NAME))


def accounts(text: str, site: Site, account: str = "") -> Iterator[Check]:
    """Check that the user may use `account`, or has one that fits the profile's pattern."""
    found = account_names(text)
    listed = ", ".join(found)
    if not found:
        do = "The site may not allow this query; a submission shows whether the account works."
        yield Check("account", "warning", "sacctmgr lists none", account, do)
    elif account and account not in found:
        yield Check("account", "failed", listed, account, "Use one of those that are listed.")
    elif not any(re.match(site.account.pattern, name) for name in found):
        do = "Correct `account.pattern` in your own profile."
        yield Check("account", "warning", listed, site.account.pattern, do)
    else:
        yield Check("account", "ok", listed)


def _limit(text: str) -> str:
    return "UNLIMITED" if text in ("UNLIMITED", "INFINITE") else text


def _most_nodes(record: Mapping[str, str], planned: int) -> str:
    """Return the most nodes of a job; `planned` if the partition's size or QOS explains it."""
    limit, total = record.get("MaxNodes", ""), record.get("TotalNodes", "")
    most = limit if limit.isdecimal() else total
    explained = total == str(planned) or record.get("QoS", "N/A") not in ("N/A", "(null)", "")
    return str(planned) if explained and most.isdecimal() and planned <= int(most) else most


_NO_LIMIT = 100 * 86_400
"""Seconds that stand for no limit in a profile, or more: no site lets a job run so long."""


def _same(key: str, real: str, planned: str) -> bool:
    if key != "max_time" or real == planned:
        return real == planned
    try:
        if real == "UNLIMITED":
            return walltime.seconds_of(planned) >= _NO_LIMIT
        return walltime.seconds_of(real) == walltime.seconds_of(planned)
    except ValueError:
        return False
