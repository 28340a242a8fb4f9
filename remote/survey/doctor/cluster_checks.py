"""Checks a cluster against its profile: the login node, and what Slurm reports. Pure."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence

from lumitui.remote.site import walltime
from lumitui.remote.site.answer_fields import count, last_words
from lumitui.remote.site.core_sets import format_cores, parse_cores
from lumitui.remote.site.finding import Finding, Severity
from lumitui.remote.site.profile import Site
from lumitui.remote.survey import slurm_records as slurm


def connection(text: str, words: str = "") -> Finding:
    """Check that the login node returns the user and the host; `words` is any other answer."""
    user, _, host = text.strip().partition("\n")
    if not host:
        message = f"id and uname print nothing{f': {words}' if words else ''}"
        return Finding("connection", "error", message, "Log in manually.")
    return Finding("connection", "note", f"{user} at {host}")


def configuration(note: str) -> Finding:
    """Return a warning about how the connection is configured on this machine."""
    return Finding(
        "configuration",
        "warning",
        note,
        "If it is not meant for this site, change the option in ~/.ssh/config.",
    )


def host_key(doubt: str) -> Finding:
    """Return a warning about a published fingerprint that differs from the known key."""
    do = "Compare both with those on the site's web pages, and correct `hosts.fingerprints`: "
    return Finding("host key", "warning", doubt, do + "until then, a new user cannot log in.")


def tools(text: str, site: Site) -> Iterator[Finding]:
    """Check the commands; `text` lists the missing ones."""
    missing = text.split()
    if missing:
        do = "Ask the site's support, or add them to the PATH of non-interactive shells."
        yield Finding("tools", "error", f"missing: {', '.join(missing)}", do)
    else:
        yield Finding("tools", "note", "all found")


def python(text: str, site: Site) -> Iterator[Finding]:
    """Check that the Python of a site without a scheduler can import torch."""
    path, _, has_torch = text.strip().rpartition(" ")
    if has_torch == "True":
        yield Finding("python", "note", f"{path} has torch")
        return
    answer = f"{path} lacks torch" if has_torch == "False" else text.strip()[-200:] or "no answer"
    do = "Set LUMITUI_PYTHON to a Python with torch, which the bundled trainers need."
    yield Finding("python", "warning", f"{answer}; the profile has {site.python}", do)


def images(text: str, site: Site) -> Iterator[Finding]:
    """Check the containers' images; `text` lists the unreadable ones."""
    missing = set(text.splitlines())
    for name, container in site.containers.items():
        if not container.image:
            continue  # the job file names it
        if container.image in missing:
            severity: Severity = "error" if name == site.default_container else "warning"
            do = f"Set `containers.{name}.image`, or `container: {{image: …}}` in the job file."
            yield Finding(f"image {name}", severity, f"cannot read {container.image}", do)
        else:
            message = f"{container.image} (on the login node; `--probe` checks a compute node)"
            yield Finding(f"image {name}", "note", message)


def module_command(text: str, site: Site) -> Iterator[Finding]:
    """Check that a login shell has the command `module`, if the profile needs it."""
    if not (site.modules or any(container.modules for container in site.containers.values())):
        return
    if text.strip() == "yes":
        yield Finding("module", "note", "available in a login shell")
    else:
        do = "The profile's `modules:` would fail. Ask the site how to enable modules."
        yield Finding("module", "error", "missing in a login shell", do)


def work_root(text: str, root: str, name: str) -> Finding:
    """Check that the work root is writable, and show its free space."""
    place, word, last, *_ = [*text.splitlines(), "", "", ""]
    usage = last.split()
    kib = count(usage[3]) if len(usage) > 3 else None
    unit, step = ("GiB", 2**20) if kib is None or kib >= 2**20 else ("MiB", 2**10)
    free = f", {kib / step:.1f} {unit} free" if kib is not None else ""
    if word not in ("writable", "refused"):
        do = "Log in and check the folder manually."
        return Finding("work root", "error", f"no answer: {last_words(text)}; it is {root}", do)
    if word == "refused":
        do = "Check the account and your quota, or set `work_root` in your own profile."
        message = f"{place} is not writable{free}; the work root is {root}"
        return Finding("work root", "error", message, do)
    if kib is not None and kib < 2**20:
        do = "Set `work_root` to a larger file system in your own profile."
        if place == root:  # lumitui has stored something there
            do = f"Free some space: `lumitui site prune {name}`. Or s{do[1:]}"
        return Finding("work root", "warning", f"{place}{free}", do)
    return Finding("work root", "note", f"{place} is writable{free}")


_LONGEST_NAME = 200
"""Maximum characters of an account: limits the search for the profile's pattern."""


def version(text: str, site: Site) -> Iterator[Finding]:
    """Check Slurm's version against the profile's: another release may behave differently."""
    real, planned = text.split()[-1] if text.split() else "", site.slurm_version
    if not re.match(r"\d+\.\d+", real):
        yield Finding(
            "Slurm",
            "error",
            text.strip()[-200:] or "no answer",
            "Run `sbatch -V` on the login node.",
        )
    elif planned and real.split(".")[:2] != planned.split(".")[:2]:
        do = f"Set `slurm_version: {real}`, and check whether the site announced changes."
        yield Finding("Slurm", "warning", f"{real}; the profile has {planned}", do)
    else:
        yield Finding("Slurm", "note", real)


def partitions(text: str, site: Site) -> Iterator[Finding]:
    """Check every partition against `scontrol show partition -o`, and the limits of its QOS."""
    every, all_qos = slurm.named(text, "PartitionName"), slurm.qualities(slurm.QOS, text)
    by_name = {record.get("PartitionName"): record for record in every}
    if not by_name:
        words = text.strip()[:200] or "no answer"
        do = "Run `scontrol show partition` on the login node."
        yield Finding("partitions", "error", words, do)
        return
    for name, partition in site.partitions.items():
        qos = partition.slurm_partition  # of a QOS, Slurm's partition has only the outer limits
        record = by_name.get(qos or name)
        title = f"partition {name}"
        if record is None:
            words = f"{qos} does not exist" if qos else "does not exist"
            words += f"; the site has {', '.join(sorted(filter(None, by_name)))}"
            yield Finding(title, "error", words, f"Remove {name}.")
            continue
        own = {record.get("QoS"), *(one.removeprefix("--qos=") for one in partition.arguments)}
        limits = [one for one in all_qos if one.name in own]
        most = min((one.gpus for one in limits if one.gpus), default=partition.max_gpus)
        least = max((one.least_gpus or 0 for one in limits), default=0) or partition.min_gpus
        allocation = "node" if slurm.gives_whole_nodes(record) else "shared"
        wrong = [
            (key, real, planned)
            for key, real, planned in (
                ("max_time", _time_limit(record, limits), partition.max_time),
                ("max_nodes", _most_nodes(record, partition.max_nodes), str(partition.max_nodes)),
                ("max_gpus", str(most or "none"), str(partition.max_gpus or "none")),
                ("min_gpus", str(least or "none"), str(partition.min_gpus or "none")),
                ("allocation", allocation, partition.allocation),
                ("preempts", *_flags(slurm.preempts(record, every), partition.preempts)),
            )
            if not _same(key, real, planned) and not (qos and key in ("max_time", "max_nodes"))
        ]
        state = record.get("State", "UP")
        real = ", ".join(f"{key} {value}" for key, value, _ in wrong)
        planned = ", ".join(value for _, _, value in wrong)
        if not all(_stricter(*row) for row in wrong):
            do = f"Set them in your own profile, {site.name}.yaml (see `lumitui docs sites`)."
            yield Finding(title, "warning", f"{real}; the profile has {planned}", do)
        elif state != "UP":
            yield Finding(title, "warning", f"is {state}", "Until it is up, use another.")
        elif wrong:  # a policy, not a mistake
            yield Finding(title, "note", f"{real}; the profile allows less: {planned}")
        else:
            words = f"{partition.max_time}, {partition.max_nodes} nodes"
            yield Finding(title, "note", words)
    needed = not any(record.get("Default") == "YES" for record in every)
    is_told = any("Default" in record for record in every)
    if is_told and needed != site.partition_required:
        real, planned = _flags(needed, site.partition_required)
        do = f"Set `partition_required: {real}` in your own profile."
        words = "no partition is the default" if needed else "a partition is the default"
        words += f"; the profile has partition_required: {planned}"
        yield Finding("default partition", "warning", words, do)


def _flags(real: bool, planned: bool) -> tuple[str, str]:
    return str(real).lower(), str(planned).lower()


def node(text: str, site: Site) -> Iterator[Finding]:
    """Check the shape of one GPU node against `scontrol show node -o`."""
    nodes = slurm.records(text)
    if not nodes or "NodeName" not in nodes[0]:
        words = text.strip()[-200:] or "no answer"
        yield Finding("node", "warning", words, "Run `scontrol show node` on the login node.")
        return
    record, shape = nodes[0], site.node
    threads = count(record.get("ThreadsPerCore", "")) or 1
    gres = re.search(r"gpu:(?:[\w.-]+:)?(\d+)", record.get("Gres", ""))
    memory = (count(record.get("RealMemory", "")) or 0) / 1024
    rows: list[tuple[str, str, str]] = [
        ("gpus", gres[1] if gres else "0", str(shape.gpus)),
        ("cores", str((count(record.get("CPUTot", "")) or 0) // threads), str(shape.cores)),
        ("threads_per_core", str(threads), str(shape.threads_per_core)),
        ("memory_gib", f"{memory:g}", f"{shape.memory_gib:g}"),
    ]
    if kept := slurm.reserved(record.get("CPUSpecList", ""), shape.cores, threads):
        planned = format_cores(parse_cores(shape.reserved_cores))
        rows.append(("reserved_cores", format_cores(kept), planned))
    types = re.findall(r"gpu:([\w.-]*[A-Za-z][\w.-]*):\d", record.get("Gres", ""))
    known = shape.gres_types
    if types and known is not None and not {t.lower() for t in types} & {*known}:
        rows.append(("gres_types", f"[{', '.join(types)}]", f"[{', '.join(known)}]"))
    name = f"node {record['NodeName']}"
    wrong = [row for row in rows if row[1] != row[2]]
    if not wrong:
        words = f"{shape.gpus} GPUs, {shape.cores} cores, {shape.memory_gib} GiB"
        yield Finding(name, "note", words)
    for key, real, planned in wrong:
        # A profile may have less memory than the node; with more, jobs wait for ever.
        roomy = key == "memory_gib" and float(real) > float(planned)
        other: Severity = "error" if key in ("gpus", "cores") else "warning"
        do = "" if roomy else f"Set `node.{key}: {real}` in your own profile."
        words = f"{real}; the profile has {planned}"
        yield Finding(f"{name} {key}", "note" if roomy else other, words, do)


def account_names(text: str) -> tuple[str, ...]:
    """Return the accounts that `sacctmgr show assoc` lists."""
    names = (line.partition("|")[0].strip() for line in text.splitlines())
    return tuple(dict.fromkeys(name for name in names if 0 < len(name) <= _LONGEST_NAME))


def accounts(text: str, site: Site, account: str = "") -> Iterator[Finding]:
    """Check that the user may use `account`, or has one that fits the profile's pattern."""
    names = account_names(text)
    listed = ", ".join(names)
    if not names:
        do = "The site may forbid this query; a submission will show whether the account works."
        yield Finding("account", "warning", "sacctmgr lists no account", do)
    elif account and account not in names:
        words = f"{account} is not one of your accounts: {listed}"
        yield Finding("account", "error", words, "Use one of these accounts.")
    elif not any(re.match(site.account.pattern, name) for name in names):
        words = f"{listed}; the profile has the pattern {site.account.pattern}"
        yield Finding("account", "warning", words, "Correct `account.pattern` in your own profile.")
    else:
        yield Finding("account", "note", listed)


def _time_limit(record: Mapping[str, str], limits: Sequence[slurm.Qos]) -> str:
    times = (slurm.seconds(record.get("MaxTime", "")), *(one.seconds for one in limits))
    least = min((one for one in times if one), default=0)
    return walltime.text_of(least) if least else "UNLIMITED"


def _most_nodes(record: Mapping[str, str], planned: int) -> str:
    """Return the most nodes of a job; `planned` if the partition's size or QOS explains it."""
    limit, total = record.get("MaxNodes", ""), record.get("TotalNodes", "")
    most = limit if limit.isdecimal() else total
    if most.isdecimal() and total.isdecimal() and planned > int(total) and planned != int(most):
        most = str(min(int(most), int(total)))  # MaxNodes may exceed the partition's size
    explained = total == str(planned) or record.get("QoS", "N/A") not in ("N/A", "(null)", "")
    return str(planned) if explained and most.isdecimal() and planned <= int(most) else most


_NO_LIMIT = 100 * 86_400
"""A profile's limit of this many seconds or more means no limit: no site lets a job run that
long."""


def _stricter(key: str, real: str, planned: str) -> bool:
    """Return whether the profile's limit is below Slurm's: its jobs still run."""
    if key == "max_time":
        try:
            most = math.inf if real == "UNLIMITED" else walltime.seconds_of(real)
            return walltime.seconds_of(planned) < most
        except ValueError:
            return False
    least, limit = count(planned), count(real)
    if key not in ("max_nodes", "max_gpus") or least is None:
        return False
    return real == "none" or (limit is not None and least < limit)


def _same(key: str, real: str, planned: str) -> bool:
    if key != "max_time" or real == planned:
        return real == planned
    try:
        if real == "UNLIMITED":
            return walltime.seconds_of(planned) >= _NO_LIMIT
        return walltime.seconds_of(real) == walltime.seconds_of(planned)
    except ValueError:
        return False
