"""The two requests of `lumitui site check`: each question with the checks of its answer."""

import re
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from lumitui.remote.site.finding import Finding
from lumitui.remote.site.profile import Site
from lumitui.remote.site.shell_text import quote
from lumitui.remote.survey.doctor import cluster_checks
from lumitui.remote.survey.slurm_records import QOS_LIMITS
from lumitui.remote.transport.questions import Question, ask
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Transport

TOOLS = ("tar", "gzip", "sha256sum", "find", "ln", "readlink")
"""Commands that lumitui needs on a login node to send code and files."""
SLURM_TOOLS = ("sbatch", "squeue", "sacct", "scancel", "scontrol")
_Row = tuple[str, str, Callable[..., Iterable[Finding]]]
MOST_SHOWN = 2_000
"""Maximum characters of a check's message, such as a list of all accounts."""


@purpose("doctor")
def examine(
    transport: Transport,
    site: Site,
    account: str,
    root_of: Callable[[str], str],
    notes: Callable[[], Sequence[str]] = tuple,
) -> list[Finding]:
    """Check `site`'s profile against the live cluster; return a note for each fact that is right.

    If `account` is empty, the first account that the site lists for the user is used. `root_of`
    returns an account's work root, `notes` the remarks on the connection's configuration.
    """
    every = questions(site, account)
    answers = ask(transport, "LC_ALL=C; export LC_ALL", (_HOST, *every), timeout=120.0, each=20)
    checks = [
        cluster_checks.connection(answers.of(_HOST), answers.words),
        *map(cluster_checks.configuration, notes()),
        *(check for question in every for check in answers.of(question)),
    ]
    accounts = cluster_checks.account_names(answers.texts.get("accounts", ""))
    chosen = account or next((a for a in accounts if re.match(site.account.pattern, a)), "")
    if chosen or not site.account.required:
        answer = transport.run(work_script(root_of(chosen)), timeout=60.0)
        checks.append(cluster_checks.work_root(answer.text, root_of(chosen), site.name))
    else:
        checks.append(Finding("work root", "warning", "not checked", "Give --account."))
    return [replace(check, message=check.message[:MOST_SHOWN]) for check in checks]


_HOST = Question("host", "id -un; uname -n", str)


def questions(site: Site, account: str = "") -> tuple[Question[Iterable[Finding]], ...]:
    """Return the questions, each with the check of its answer, without host and work root."""
    slurm = site.scheduler == "slurm"
    # A Mac has no sha256sum.
    names = (*TOOLS, *SLURM_TOOLS) if slurm else (*TOOLS[:2], *TOOLS[3:])
    tools = f"""for tool in {" ".join(names)}; do
  command -v "$tool" >/dev/null 2>&1 || echo "$tool"; done"""
    return tuple(
        Question(name, sh, partial(check, site=site))
        for name, sh, check in (
            ("tools", tools, cluster_checks.tools),
            *(_of_slurm(site, account) if slurm else _of_processes(site)),
        )
    )


def _of_processes(site: Site) -> Iterator[_Row]:
    interpreter = site.python if re.match(r"^[\w./${}:-]+$", site.python) else "python3"
    # As the site's supervisor does: by default, the Python that runs lumitui.
    sh = (
        f': "${{LUMITUI_PYTHON:={sys.executable}}}"\n"{interpreter}" -c "import sys, '
        "importlib.util as i; print(sys.executable, bool(i.find_spec('torch')))\" 2>&1"
    )
    yield "python", sh, cluster_checks.python


def _of_slurm(site: Site, account: str) -> Iterator[_Row]:
    yield "slurm", "$t sbatch --version 2>&1", cluster_checks.version
    limits = f"$t scontrol show partition -o 2>&1\n{QOS_LIMITS}"
    yield "partitions", limits, cluster_checks.partitions
    # An entry may be a QOS; Slurm lists the nodes under the partition's own name.
    first = quote(next(item.slurm_partition or name for name, item in site.partitions.items()))
    node = rf"""nodes=$($t scontrol show partition -o {first} 2>/dev/null |
  sed -n 's/.* Nodes=\([^ ]*\).*/\1/p')
one=$($t scontrol show hostnames "$nodes" 2>/dev/null | head -n 1)
[ -z "$one" ] || $t scontrol show node -o "$one" 2>&1"""
    yield "node", node, cluster_checks.node
    paths = [quote(one.image) for one in site.containers.values() if one.image]
    images = "\n".join(f"[ -r {path} ] || printf '%s\\n' {path}" for path in paths)
    yield "images", images, cluster_checks.images
    module = "bash -lc 'type module' >/dev/null 2>&1 && echo yes"
    yield "module", module, cluster_checks.module_command
    own = '$t sacctmgr -n -P show assoc user="$(id -un)" format=account 2>/dev/null'
    yield "accounts", own, partial(cluster_checks.accounts, account=account)


def work_script(root: str) -> str:
    """Return the second request: is `root`, or its parent, writable, and how much space is free?"""
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
