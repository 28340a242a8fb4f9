"""The runs on a site that use its virtual environments, whichever computer sent them."""

import re

from lumitui.remote.site.answer_fields import last_words, lines
from lumitui.remote.site.errors import AnswerUnusable
from lumitui.remote.site.run_folder import CLAIM, COPYING_SECONDS, JOB_SCRIPT, RECEIPT, VENV_SCRIPT
from lumitui.remote.site.shell_text import fill, quote
from lumitui.remote.transfer.staging.staging_upkeep import Holder
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Transport

_LIST = """\
LC_ALL=C; export LC_ALL
cd {root} 2>/dev/null || exit 0
for r in */runs/*/; do
  [ -f "${r}{venv}" ] || continue
  name=$(sed -n 's/^# Virtual environment \\([0-9a-f]*\\).*/\\1/p' "${r}{script}" | head -n 1)
  [ "${#name}" -eq 16 ] || continue
  job=$(readlink "${r}{claim}") ||
    job=$(sed 's/[^0-9].*//;q' "${r}{receipt}" 2>/dev/null)
  case $job in void) continue;; ''|*[!0-9]*) job=-;; esac
  old=; [ -n "$(find "$r" -maxdepth 0 -mmin -{making})" ] || old=old
  printf '%s\\n' "u $name $job young$old $r"
done
"""
_USED = re.compile(r"u ([0-9a-f]{16}) ([0-9]{1,15}|-) young(old)? (.+/([^/]+))/")


@purpose("environments")
def holders_of(transport: Transport, root: str) -> dict[str, list[Holder]]:
    """Return the runs below the work root `root` by the environment that each names.

    Whether a run has ended is not said.

    Raises:
        AnswerUnusable: the site does not say.
        LinkError: the site cannot be reached.
    """
    names = {"venv": VENV_SCRIPT, "script": JOB_SCRIPT, "claim": CLAIM, "receipt": RECEIPT}
    making = f"{int(COPYING_SECONDS // 60)}"
    result = transport.run(fill(_LIST, root=quote(root), making=making, **names), timeout=300.0)
    found: dict[str, list[Holder]] = {}
    for line in lines(result.out):
        match = _USED.fullmatch(line)
        if match is None:
            raise AnswerUnusable(
                f"The site does not say which runs use environments; it says: {last_words(line)}.",
                "Check what your login files print there, and ask again.",
            )
        job = "" if match[2] == "-" else match[2]
        holder = Holder(match[5], f"{root}/{match[4]}", job, match[3] is None)
        found.setdefault(match[1], []).append(holder)
    return found
