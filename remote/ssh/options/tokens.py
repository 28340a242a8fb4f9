"""Tokens (`%h`), variables (`${NAME}`) and names in values of the ssh configuration.

The rules are those of ssh_config(5), TOKENS and ENVIRONMENT VARIABLES. What OpenSSH refuses in
names of hosts and users since 9.6 (`ssh_valid_hostname`, `ssh_valid_ruser` in its readconf.c) is
refused here with every version, and before anything is started with such a name.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from lumitui.remote.errors import LinkError

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
        LinkError: as `expand`; or the home of an unknown user.
    """
    try:
        text = os.fspath(Path(text).expanduser()) if text.startswith("~") else text
    except RuntimeError as error:
        raise LinkError(
            f"The option {keyword} of the ssh configuration names an unknown user: {text}.",
            "Correct it.",
        ) from error
    return Path(expand(keyword, text, tokens))
