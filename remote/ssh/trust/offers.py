"""What a server offers before any check sum protects it: whether it can be meant, what is missing.

Sources: RFC 4251, 6 (names are printable ASCII of 64 characters at most, without a comma);
RFC 4253, 6.2 (`none` is a compression that every server has) and 7.1 (the lists).
"""

import re
from collections.abc import Mapping, Sequence

Lists = Mapping[str, Sequence[str]]
"""Lists of names, by paramiko's names for them."""

_NAME = re.compile(r"[!-+\--~]{1,64}")
_ONE_WAY = {"kex_algo_list": "key exchange", "server_key_algo_list": "host key"}
_BOTH_WAYS = {"encrypt_algo_list": "cipher", "mac_algo_list": "MAC"}
_COMPRESSION = "compress_algo_list"
_MOST = 300  # characters of a list that a person is shown


def unshared(theirs: Lists, ours: Mapping[str, Sequence[str]]) -> str:
    """Return what the server offers where it shares nothing with us, for a person.

    Args:
        theirs: the lists that the server sent; empty: it sent none.
        ours: by `key exchange`, `host key`, `cipher` and `MAC`.

    Returns:
        Empty where there is no such list, or where the lists look damaged: then nothing can be
        said of what the server has.
    """
    if not theirs or not _meant(theirs):
        return ""
    kinds = {**_ONE_WAY, **{f"client_{name}": kind for name, kind in _BOTH_WAYS.items()}}
    for name, kind in kinds.items():
        if set(theirs[name]).isdisjoint(ours[kind]):
            if any(_one_bit_apart(word, own) for word in theirs[name] for own in ours[kind]):
                return ""
            return f"as {kind} it offers only {', '.join(theirs[name])[:_MOST]}"
    return ""


def _meant(lists: Lists) -> bool:
    """Whether the lists are such as servers send: the same in both directions, and names."""
    for name in (*_BOTH_WAYS, _COMPRESSION):
        if list(lists[f"client_{name}"]) != list(lists[f"server_{name}"]):
            return False
    words = [word for name in lists if name.endswith("_algo_list") for word in lists[name]]
    return "none" in lists[f"client_{_COMPRESSION}"] and all(map(_NAME.fullmatch, words))


def _one_bit_apart(one: str, other: str) -> bool:
    if len(one) != len(other):
        return False
    apart = [ord(a) ^ ord(b) for a, b in zip(one, other, strict=True) if a != b]
    return len(apart) == 1 and apart[0].bit_count() == 1
