"""Lists the user's SSH keys; never creates one, and never reads a private key."""

import os
from dataclasses import dataclass
from pathlib import Path

_MOST_BYTES = 20_000
_KINDS = ("ssh-", "ecdsa-", "sk-")
"""How the first word of a public key begins."""


@dataclass(frozen=True)
class Key:
    """A private key with its public key beside it."""

    path: Path
    """The private key."""
    kind: str
    """The public key's type, such as `ssh-ed25519`."""
    comment: str


def keys_in(folder: Path) -> tuple[Key, ...]:
    """Return the keys in `folder`, by name; open only the public ones."""
    try:
        return tuple(filter(None, map(_key, sorted(folder.glob("*.pub")))))
    except OSError:
        return ()


def _key(public: Path) -> Key | None:
    private = public.with_suffix("")
    try:
        if not private.is_file() or not public.is_file():
            return None
        descriptor = os.open(public, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            words = file.read(_MOST_BYTES).decode("utf-8", "replace").split(maxsplit=2)
    except OSError:
        return None
    if len(words) < 2 or not words[0].startswith(_KINDS) or "cert" in words[0]:
        return None
    comment = words[2].splitlines()[0].strip() if len(words) > 2 else ""
    return Key(private, words[0], comment)
