"""The two requests of `lumitui doctor`, and the checks of their answers in order."""

import re
import secrets
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

from lumitui.remote.site.answer_fields import last_words
from lumitui.remote.site.profile import Site
from lumitui.remote.site.shell_text import quote
from lumitui.remote.survey.doctor import login_node, slurm_checks
from lumitui.remote.survey.doctor.check_result import Check
from lumitui.remote.transport.records import new_marker, parse_records, record_functions
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Transport

TOOLS = ("tar", "gzip", "sha256sum", "find", "ln", "readlink")
"""What a site's login node needs for code and files."""
SLURM_TOOLS = ("sbatch", "squeue", "sacct", "scancel", "scontrol")
MOST_PART = 1 << 20
"""Most bytes of one record that are looked at: 1,000 partitions in a line of 1,000 bytes each."""
MOST_FOUND = 2_000
"""Most characters of what a check shows, like the names of all accounts."""


@purpose("doctor")
def examine(
    transport: Transport,
    site: Site,
    account: str,
    root_of: Callable[[str], str],
    notes: Callable[[], Sequence[str]] = tuple,
) -> list[Check]:
    """Return the checks of `site`'s profile against the live cluster.

    `account` may be empty: then the first one that the site lists for the person is used.
    `root_of` gives the work root of an account, `notes` what a person should know of how the
    connection is configured.

    Raises:
        LinkError: the site cannot be reached.
    """
    marker = new_marker()
    result = transport.run(script(site, marker), timeout=120.0)
    parts = answers(result.out, marker)
    said = last_words(result.err, result.out, default=f"exit status {result.code}")
    checks = [
        login_node.connection(parts.get("host", ""), said),
        *map(login_node.configuration, notes()),
        login_node.tools(parts.get("tools", "")),
    ]
    accounts: Sequence[str] = ()
    if site.scheduler == "slurm":
        accounts = slurm_checks.account_names(parts.get("accounts", ""))
        checks.append(slurm_checks.version(parts.get("slurm", ""), site))
        checks += slurm_checks.partitions(parts.get("partitions", ""), site)
        checks += slurm_checks.node(parts.get("node", ""), site)
        checks += login_node.images(parts.get("images", ""), site)
        checks += login_node.module_command(parts.get("module", ""), site)
        checks.append(slurm_checks.accounts(accounts, account, site))
    else:
        checks.append(login_node.python(parts.get("python", ""), site))
    chosen = account or next((a for a in accounts if re.match(site.account.pattern, a)), "")
    if chosen or not site.account.required:
        answer = transport.run(work_script(root_of(chosen)), timeout=60.0)
        checks.append(login_node.work_root(answer.text, root_of(chosen)))
    else:
        checks.append(
            Check("work root", "warning", "not checked", site.work_root, "Give --account.")
        )
    return [replace(check, found=_shortened(check.found)) for check in checks]


def _shortened(text: str) -> str:
    return text if len(text) <= MOST_FOUND else f"{text[:MOST_FOUND]} ..."


def script(site: Site, marker: str) -> str:
    """Return the first request: everything but the work root, one record per question."""
    # An entry may be a QOS: Slurm knows the nodes by its own name of the partition.
    first = quote(next(item.slurm_partition or name for name, item in site.partitions.items()))
    wanted = (*TOOLS, *SLURM_TOOLS) if site.scheduler == "slurm" else (*TOOLS[:2], *TOOLS[3:])
    lines = [
        "LC_ALL=C; export LC_ALL",
        # A controller that does not answer must not hold the whole request.
        "t=; if command -v timeout >/dev/null 2>&1; then t='timeout 20'; fi",
        record_functions(marker),
        "begin host; id -un; uname -n; finish",
        f"begin tools; for tool in {' '.join(wanted)}; do",
        '  command -v "$tool" >/dev/null 2>&1 || echo "$tool"; done; finish',
    ]
    if site.scheduler == "process":
        interpreter = site.python if re.match(r"^[\w./${}:-]+$", site.python) else "python3"
        lines += [
            # As the site's supervisor does: without it, the python that runs this program.
            f': "${{LUMITUI_PYTHON:={sys.executable}}}"',
            "begin python",
            f'"{interpreter}" -c "import sys, importlib.util as i; '
            "print(sys.executable, bool(i.find_spec('torch')))\" 2>&1; finish",
        ]
        return "\n".join(lines)
    images = [container.image for container in site.containers.values()]
    lines += [
        "begin slurm; $t sbatch --version 2>&1; finish",
        "begin partitions; $t scontrol show partition -o 2>&1; finish",
        "begin node",
        f"nodes=$($t scontrol show partition -o {first} 2>/dev/null |",
        "  sed -n 's/.* Nodes=\\([^ ]*\\).*/\\1/p')",
        'one=$($t scontrol show hostnames "$nodes" 2>/dev/null | head -n 1)',
        '[ -z "$one" ] || $t scontrol show node -o "$one" 2>&1; finish',
        "begin accounts",
        '$t sacctmgr -n -P show assoc user="$(id -un)" format=account 2>/dev/null; finish',
        "begin images",
        *(f"[ -r {quote(path)} ] || printf '%s\\n' {quote(path)}" for path in images),
        "finish",
        "begin module",
        "bash -lc 'type module' >/dev/null 2>&1 && echo yes; finish",
        "exit 0",
    ]
    return "\n".join(lines)


def work_script(root: str) -> str:
    """Return the second request: can a file be written at or above `root`, and how much fits?"""
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


def answers(output: bytes, marker: str) -> dict[str, str]:
    """Return the records of the first request's answer by name, each no longer than MOST_PART."""
    found = parse_records(output, marker)
    return {
        " ".join(record.words): record.content[:MOST_PART].decode("utf-8", "replace")
        for record in found
    }
