"""Tokens (`%h`), variables (`${NAME}`) and names in values of the ssh configuration.

The rules are those of ssh_config(5), TOKENS and ENVIRONMENT VARIABLES. What OpenSSH refuses in
names of hosts and users since 9.6 (`ssh_valid_hostname`, `ssh_valid_ruser` in its readconf.c) is
refused here with every version, and before anything is started with such a name.
"""

import os
import pwd
import re
from collections.abc import Mapping
from pathlib import Path

from lumitui.remote.site.errors import LinkError

_TOKEN = re.compile(r"%(.?)|\$\{([^}]*)(\}?)", re.DOTALL)
_HOST = re.compile(r"(?!-)[^'`\"$\\;&<>|(){},\s\x00-\x1f\x7f]+")
_USER = re.compile(r"(?!-)(?:(?!\s-)[^'`\";&<>|(){}\x00-\x1f\x7f])*(?<!\\)")


def check_names(host: str, user: str = "") -> None:
    """Return if a command line may carry the names; an empty `user` is any.

    Raises:
        LinkError: a name has characters that mean something to a shell.
    """
    for what, name, rule in (("host", host, _HOST), ("user", user, _USER)):
        if not rule.fullmatch(name):
            raise LinkError(
                f"{name!r} cannot be the name of a {what}: it has characters that a shell would "
                "interpret.",
                "Correct it in the site's profile or in the ssh configuration.",
            )


def expand(keyword: str, text: str, tokens: Mapping[str, str], *, variables: bool = True) -> str:
    """Return the value `text` of the option `keyword` with its tokens filled in.

    Args:
        keyword: the option, for the error.
        text: its value.
        tokens: letter -> text, for the letters that this option may have.
        variables: whether `${NAME}` is a variable of the environment.

    Raises:
        LinkError: a token that the option has not, or a variable that is not set.
    """

    def fill(match: re.Match[str]) -> str:
        letter, name, closed = match.groups()
        if letter is not None:
            if letter == "%":
                return "%"
            if letter in tokens:
                return tokens[letter]
            problem = f"has the token %{letter}, which it cannot have"
        elif not variables:
            return match[0]
        elif not closed or not name:
            problem = "has a variable that does not end with a name and }"
        elif name in os.environ:
            return os.environ[name]
        else:
            problem = f"needs the variable {name}, which is not set"
        raise LinkError(
            f"The option {keyword} of the ssh configuration {problem}: {text}.", "Correct it."
        )

    return _TOKEN.sub(fill, text)


def local_path(keyword: str, text: str, tokens: Mapping[str, str]) -> Path:
    """Return the file that `text` names: `~`, tokens and variables filled in.

    Raises:
        LinkError: as `expand` and `from_home`.
    """
    return Path(expand(keyword, from_home(keyword, text), tokens))


def from_home(keyword: str, text: str) -> str:
    """Return the path `text` with `~` or `~user` at its start filled in.

    As for OpenSSH, the home folder is that of the account, whatever HOME says.

    Raises:
        LinkError: there is no such user.
    """
    if not text.startswith("~"):
        return text
    name, slash, rest = text[1:].partition("/")
    try:
        place = pwd.getpwnam(name).pw_dir if name else home()
    except KeyError as error:
        raise LinkError(
            f"The option {keyword} of the ssh configuration names an unknown user: {text}.",
            "Correct it.",
        ) from error
    return place + slash + rest


def home() -> str:
    """Return the home folder of the person's account."""
    return pwd.getpwuid(os.getuid()).pw_dir
