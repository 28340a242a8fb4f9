"""How OpenSSH reads the lines of a file of keys: known_hosts, and lists of revoked keys.

Source: `hostkeys_foreach_file` (hostfile.c), `sshkey_read` (sshkey.c), `b64_pton`. Only a line feed
ends a line, only space and tab are blanks; whatever else Python takes for one belongs to a word.
"""

import base64
import re
from collections.abc import Iterator

_IGNORED_IN_BASE64 = b" \t\n\v\f\r"


def numbered_lines(data: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """Return the number and the words of each line that is not empty and no comment."""
    for number, line in enumerate(data.split(b"\n"), 1):
        text = line.partition(b"\0")[0].strip(b" \t")  # in C a string ends at a NUL
        if text and not text.startswith(b"#"):
            yield number, re.split(rb"[ \t]+", text)


def decoded(word: bytes) -> bytes:
    """Return what a word in base64 says; a line end of Windows behind it is no part of it.

    Raises:
        ValueError: it is not base64, or not as an encoder writes it.
    """
    plain = word.translate(None, _IGNORED_IN_BASE64)
    found = base64.b64decode(plain, validate=True)
    if base64.b64encode(found) != plain:
        raise ValueError("not base64")
    return found
