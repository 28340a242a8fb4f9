"""The runs on a site that use its stored data, sent from any computer."""

import re
from dataclasses import dataclass

from lumitui.remote.site.answer_fields import last_words, lines
from lumitui.remote.site.errors import AnswerUnusable
from lumitui.remote.site.run_folder import CLAIM, COPYING_SECONDS, JOB_SCRIPT, RECEIPT, VENV_SCRIPT
from lumitui.remote.site.shell_text import fill, quote
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Transport

USERS = fill(
    """\
users() {
  r=$1; shift
  job=$(readlink "${r}{claim}") || job=$(sed 's/[^0-9].*//;q' "${r}{receipt}" 2>/dev/null)
  case $job in void) return;; ''|*[!0-9]*) job=-;; esac
  old=; [ -n "$(find "$r" -maxdepth 0 -mmin -{making})" ] || old=old
  for name; do printf '%s\\n' "u $name $job young$old ${r#../}"; done
}
""",
    claim=CLAIM,
    receipt=RECEIPT,
    making=int(COPYING_SECONDS // 60),
)
"""Defines `users FOLDER NAME...`: prints a line for each name used by the run in `FOLDER/`."""
_USED = re.compile(r"u ([0-9a-f]{16}|[0-9a-f]{24}) ([0-9]{1,15}|-) young(old)? (.+/([^/]+))/")


@dataclass(frozen=True)
class RunUser:
    """A run below a work root that uses something; it may have ended."""

    run: str
    folder: str
    """On the site."""
    job_id: str
    """Empty: none is known."""
    young: bool
    """Whether the folder may still be in preparation."""


def user_in(line: str, root: str) -> tuple[str, RunUser] | None:
    """Return the run below `root` in a line, with the items it uses; None for another line."""
    match = _USED.fullmatch(line)
    if match is None:
        return None
    job = "" if match[2] == "-" else match[2]
    return match[1], RunUser(match[5], f"{root}/{match[4]}", job, match[3] is None)


_VENV_USERS = (
    USERS
    + """\
LC_ALL=C; export LC_ALL
cd {root} 2>/dev/null || exit 0
for r in */runs/*/; do
  [ -f "${r}{venv}" ] || continue
  name=$(sed -n 's/^# Virtual environment \\([0-9a-f]*\\).*/\\1/p' "${r}{script}" | head -n 1)
  [ "${#name}" -ne 16 ] || users "$r" "$name"
done
"""
)


@purpose("environments")
def venv_users(transport: Transport, root: str) -> dict[str, list[RunUser]]:
    """Return the runs below the work root `root`, by environment.

    Raises:
        AnswerUnusable: the site's answer is unusable.
    """
    script = fill(_VENV_USERS, root=quote(root), venv=VENV_SCRIPT, script=JOB_SCRIPT)
    users: dict[str, list[RunUser]] = {}
    for line in lines(transport.run(script, timeout=300.0).out):
        match = user_in(line, root)
        if match is None:
            raise AnswerUnusable(
                f"The site answered with {last_words(line)} instead of a list of the runs that "
                "use environments.",
                "Check what your shell startup files print on the site, and query again.",
            )
        users.setdefault(match[0], []).append(match[1])
    return users
