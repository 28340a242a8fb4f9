"""The runs on a site that use its virtual environments, whichever computer sent them."""

from lumitui.remote.site.answer_fields import last_words, lines
from lumitui.remote.site.errors import AnswerUnusable
from lumitui.remote.site.run_folder import JOB_SCRIPT, VENV_SCRIPT
from lumitui.remote.site.shell_text import fill, quote
from lumitui.remote.transfer.run_users import USERS, RunUser, user_in
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Transport

_LIST = (
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
    """Return the runs below the work root `root` by the environment that each names.

    Raises:
        AnswerUnusable: the site does not say.
        LinkError: the site cannot be reached.
    """
    script = fill(_LIST, root=quote(root), venv=VENV_SCRIPT, script=JOB_SCRIPT)
    users: dict[str, list[RunUser]] = {}
    for line in lines(transport.run(script, timeout=300.0).out):
        match = user_in(line, root)
        if match is None:
            raise AnswerUnusable(
                f"The site does not say which runs use environments; it says: {last_words(line)}.",
                "Check what your login files print there, and ask again.",
            )
        users.setdefault(match[0], []).append(match[1])
    return users
