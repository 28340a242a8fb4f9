"""doctor: a profile checked against the live cluster, in two requests. Parsers are pure."""

import re
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lumitui.remote import walltime
from lumitui.remote.cores import format_cores, parse_cores
from lumitui.remote.scheduler.protocol import count
from lumitui.remote.site.profile import Site
from lumitui.remote.transport.protocol import Transport
from lumitui.remote.transport.shell import quote

Status = Literal["ok", "warning", "failed"]
TOOLS = ("tar", "gzip", "sha256sum", "find", "ln", "readlink")
"""What a site's login node needs for code and files."""
SLURM_TOOLS = ("sbatch", "squeue", "sacct", "scancel", "scontrol")
_MARK = "\x1e"


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    status: Status
    found: str
    expected: str = ""
    do: str = ""
    """What to try; empty when it is ok."""


def examine(
    transport: Transport, site: Site, account: str, root_of: Callable[[str], str]
) -> list[Check]:
    """Return what the live cluster says of `site`'s profile.

    `account` may be empty: the first one that the site lists for the person is taken. `root_of`
    gives the work root of an account.

    Raises:
        LinkError: the site cannot be reached.
    """
    result = transport.run(script(site), timeout=120.0)
    parts = sections(result.text)
    checks = [
        connection(parts.get("host", "")),
        tools(parts.get("tools", ""), site),
    ]
    accounts: Sequence[str] = ()
    if site.scheduler == "slurm":
        accounts = account_names(parts.get("accounts", ""))
        checks.append(slurm_version(parts.get("slurm", ""), site))
        checks += partitions(parts.get("partitions", ""), site)
        checks += node(parts.get("node", ""), site)
        checks += images(parts.get("images", ""), site)
        checks += module_command(parts.get("module", ""), site)
        checks.append(person_accounts(accounts, account, site))
    else:
        checks.append(python(parts.get("python", ""), site))
    chosen = account or next((a for a in accounts if re.match(site.account.pattern, a)), "")
    if chosen or not site.account.required:
        answer = transport.run(work_script(root_of(chosen)), timeout=60.0)
        checks.append(work_root(answer.text, root_of(chosen)))
    else:
        checks.append(
            Check("work root", "warning", "not looked at", site.work_root, "Give --account.")
        )
    return checks


def script(site: Site) -> str:
    """Return the first request: everything but the work root, in sections."""
    first = quote(next(iter(site.partitions)))
    wanted = (*TOOLS, *SLURM_TOOLS) if site.scheduler == "slurm" else (*TOOLS[:2], *TOOLS[3:])
    lines = [
        "LC_ALL=C; export LC_ALL",
        # A controller that does not answer must not hold the whole request.
        "t=; if command -v timeout >/dev/null 2>&1; then t='timeout 20'; fi",
        "section() { printf '\\036%s\\n' \"$1\"; }",
        "section host; id -un; uname -n",
        f"section tools; for tool in {' '.join(wanted)}; do",
        '  command -v "$tool" >/dev/null 2>&1 || echo "$tool"; done',
    ]
    if site.scheduler == "process":
        interpreter = site.python if re.match(r"^[\w./${}:-]+$", site.python) else "python3"
        lines += [
            # As the site's supervisor does: without it, the python that runs this program.
            f': "${{LUMITUI_PYTHON:={sys.executable}}}"',
            "section python",
            f'"{interpreter}" -c "import sys, importlib.util as i; '
            "print(sys.executable, bool(i.find_spec('torch')))\" 2>&1",
        ]
        return "\n".join(lines)
    found = [container.image for container in site.containers.values()]
    lines += [
        "section slurm; $t sbatch --version 2>&1",
        "section partitions; $t scontrol show partition -o 2>&1",
        "section node",
        f"nodes=$($t scontrol show partition -o {first} 2>/dev/null |",
        "  sed -n 's/.* Nodes=\\([^ ]*\\).*/\\1/p')",
        'one=$($t scontrol show hostnames "$nodes" 2>/dev/null | head -n 1)',
        '[ -z "$one" ] || $t scontrol show node -o "$one" 2>&1',
        "section accounts",
        '$t sacctmgr -n -P show assoc user="$(id -un)" format=account 2>/dev/null',
        "section images",
        *(f"[ -r {quote(path)} ] || printf '%s\\n' {quote(path)}" for path in found),
        "section module",
        "bash -lc 'type module' >/dev/null 2>&1 && echo yes",
        "exit 0",
    ]
    return "\n".join(lines)


def work_script(root: str) -> str:
    """Return the second request: can a file be written at or above `root`, and how much fits."""
    return f"""
at={quote(root)}
while [ ! -d "$at" ] && [ "$at" != / ]; do at=$(dirname "$at"); done
printf '%s\\n' "$at"
# A folder: where others may write too, a file of this name could be a link of theirs.
try=$at/.lumitui-doctor-{secrets.token_hex(8)}
if mkdir -m 700 "$try" 2>/dev/null; then rmdir "$try"; echo writable; else echo refused; fi
df -Pk "$at" 2>/dev/null | tail -n 1
exit 0
"""


def sections(text: str) -> dict[str, str]:
    """Return the sections of the first request's answer by name."""
    parts = {}
    for block in text.split(_MARK)[1:]:
        name, _, content = block.partition("\n")
        parts[name] = content
    return parts


def records(text: str) -> list[dict[str, str]]:
    """Return the `Key=value` records of `scontrol … -o`, a line each."""
    return [
        dict(re.findall(r"(?:^|\s)([A-Za-z][\w/:]*)=(\S*)", line))
        for line in text.splitlines()
        if "=" in line
    ]


def connection(text: str) -> Check:
    """Check who we are there, and where."""
    user, _, host = text.strip().partition("\n")
    if not host:
        return Check("connection", "failed", "no answer of id and uname", "", "Log in by hand.")
    return Check("connection", "ok", f"{user} at {host}")


def tools(text: str, site: Site) -> Check:
    """Check that no command is missing (the answer lists those that are)."""
    missing = text.split()
    if missing:
        do = "Ask the site's support, or put them into PATH of non-interactive shells."
        return Check("tools", "failed", f"not there: {', '.join(missing)}", "", do)
    return Check("tools", "ok", "all there")


def python(text: str, site: Site) -> Check:
    """Check that the site's python can import torch (a site of plain processes)."""
    path, _, has_torch = text.strip().rpartition(" ")
    if has_torch == "True":
        return Check("python", "ok", f"{path} has torch")
    return Check(
        "python",
        "warning",
        f"{path} has no torch" if has_torch == "False" else text.strip()[-200:] or "no answer",
        site.python,
        "Bundled trainers need it: set LUMITUI_PYTHON to a python that has torch.",
    )


def slurm_version(text: str, site: Site) -> Check:
    """Check Slurm's version against the profile's: a new year's release may behave otherwise."""
    found = text.split()[-1] if text.split() else ""
    if not re.match(r"\d+\.\d+", found):
        return Check("Slurm", "failed", text.strip()[-200:] or "no answer", site.slurm_version)
    if site.slurm_version and found.split(".")[:2] != site.slurm_version.split(".")[:2]:
        do = f"Set `slurm_version: {found}`, and look whether the site announced changes."
        return Check("Slurm", "warning", found, site.slurm_version, do)
    return Check("Slurm", "ok", found)


def partitions(text: str, site: Site) -> Iterator[Check]:
    """Check every partition of the profile against `scontrol show partition -o`."""
    found = {record.get("PartitionName"): record for record in records(text)}
    if not found:
        words = text.strip()[-200:] or "no answer"
        yield Check("partitions", "failed", words, "", "Try `scontrol show partition` there.")
        return
    for name, partition in site.partitions.items():
        record = found.get(name)
        title = f"partition {name}"
        if record is None:
            known = ", ".join(sorted(filter(None, found)))
            yield Check(title, "failed", f"not there; {known} are", "", f"Remove {name}.")
            continue
        allocation = "node" if record.get("OverSubscribe") == "EXCLUSIVE" else "shared"
        wrong = [
            (key, real, planned)
            for key, real, planned in (
                ("max_time", _limit(record.get("MaxTime", "")), partition.max_time),
                ("max_nodes", _count(record), str(partition.max_nodes)),
                ("allocation", allocation, partition.allocation),
            )
            if not _same(key, real, planned)
        ]
        state = record.get("State", "UP")
        if wrong:
            yield Check(
                title,
                "warning",
                ", ".join(f"{key} {real}" for key, real, _ in wrong),
                ", ".join(f"{key} {planned}" for key, _, planned in wrong),
                f"Set them in your own profile {site.name}.yaml (`extends: {site.name}`).",
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
    if reserved := _cores(record.get("CPUSpecList", "")):
        # Slurm numbers these by core and thread in turn, some versions by thread after thread.
        ways = {format_cores(c // threads for c in reserved)}
        ways.add(format_cores(c for c in reserved if c < shape.cores))
        planned = format_cores(parse_cores(shape.reserved_cores))
        rows.append(("reserved_cores", planned if planned in ways else min(ways), planned))
    name = f"node {record['NodeName']}"
    wrong = [row for row in rows if row[1] != row[2]]
    if not wrong:
        yield Check(name, "ok", f"{shape.gpus} GPUs, {shape.cores} cores, {shape.memory_gib} GiB")
    for key, real, planned in wrong:
        # More memory than the profile gives is its choice; less makes jobs wait for ever.
        roomy = key == "memory_gib" and float(real) > float(planned)
        status: Status = "ok" if roomy else "failed" if key in ("gpus", "cores") else "warning"
        do = "" if roomy else f"Set `node.{key}: {real}` in your own profile."
        yield Check(f"{name} {key}", status, real, planned, do)


def images(text: str, site: Site) -> Iterator[Check]:
    """Check that the containers' images can be read (the answer lists those that cannot)."""
    missing = set(text.splitlines())
    for name, container in site.containers.items():
        if container.image in missing:
            status: Status = "failed" if name == site.default_container else "warning"
            do = f"Name another image: `containers.{name}.image`, or `container: {{image: …}}`."
            yield Check(f"image {name}", status, "not there", container.image, do)
        else:
            yield Check(f"image {name}", "ok", container.image)


def module_command(text: str, site: Site) -> Iterator[Check]:
    """Check that a login shell has `module` where the profile uses it."""
    if not (site.modules or any(container.modules for container in site.containers.values())):
        return
    if text.strip() == "yes":
        yield Check("module", "ok", "a login shell has it")
    else:
        do = "The profile's `modules:` lines would fail; ask the site how modules are set up."
        yield Check("module", "failed", "not in a login shell", "module", do)


def account_names(text: str) -> tuple[str, ...]:
    """Return the accounts `sacctmgr show assoc` lists."""
    names = (line.partition("|")[0].strip() for line in text.splitlines())
    return tuple(dict.fromkeys(name for name in names if name))


def person_accounts(found: Sequence[str], account: str, site: Site) -> Check:
    """Check that the person may use `account`, or has one the profile's pattern fits."""
    listed = ", ".join(found)
    if not found:
        do = "The site may not let you ask; a submit will tell."
        return Check("account", "warning", "sacctmgr lists none", account, do)
    if account and account not in found:
        return Check("account", "failed", listed, account, "Use one of those that are listed.")
    if not any(re.match(site.account.pattern, name) for name in found):
        do = "Correct `account.pattern` in your own profile."
        return Check("account", "warning", listed, site.account.pattern, do)
    return Check("account", "ok", listed)


def work_root(text: str, root: str) -> Check:
    """Check that files can be written at the work root, and tell the free space."""
    lines = [*text.splitlines(), "", ""]
    place, word, usage = lines[0], lines[1], lines[2].split()
    free = f", {int(usage[3]) / 2**20:.1f} GiB free" if len(usage) > 3 and _whole(usage[3]) else ""
    if word != "writable":
        do = "Check the account and your quota, or set `work_root` in your own profile."
        return Check("work root", "failed", f"{place} cannot be written{free}", root, do)
    if len(usage) > 3 and _whole(usage[3]) and int(usage[3]) < 2**20:
        return Check("work root", "warning", f"{place}{free}", root, "Make room: `lumitui prune`.")
    return Check("work root", "ok", f"{place} is writable{free}")


def _cores(text: str) -> set[int]:
    """Return the cores that Slurm lists; none where it lists something else."""
    try:
        return set(parse_cores(text))
    except ValueError:
        return set()


def _whole(text: str) -> bool:
    return count(text) is not None


def _limit(text: str) -> str:
    return "UNLIMITED" if text in ("UNLIMITED", "INFINITE") else text


def _count(record: Mapping[str, str]) -> str:
    limit, total = record.get("MaxNodes", ""), record.get("TotalNodes", "")
    return limit if limit.isdecimal() else total


def _same(key: str, real: str, planned: str) -> bool:
    if key != "max_time" or real == planned:
        return real == planned
    try:
        return walltime.seconds_of(real) == walltime.seconds_of(planned)
    except ValueError:
        return False
