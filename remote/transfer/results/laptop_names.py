"""Names that a site gives to files: what becomes of them on the laptop. Pure."""

LONGEST_NAME = 4096
"""Most bytes of a path (Linux's PATH_MAX): nothing longer can be a file's name on the site."""
LONGEST_PART = 255
"""Most bytes of one part of a path (NAME_MAX of ext4, XFS, Lustre, APFS and others)."""
MOST_PARTS = 128
"""Most folders above a file: a training's results lie five deep."""
RESERVED = ".lumitui-fetch"
"""The folder of partly copied files, below the target of a fetch."""
_SHOWN = 60


class NameFault(ValueError):
    """Why a file of that name cannot be fetched, as the end of a sentence."""


def name_of(path: bytes) -> str:
    """Return the name below the folder of a `path` that begins with `./`, in its shortest form.

    Raises:
        NameFault: the name cannot be kept, is no text, or leads out of the folder.
    """
    if len(path) > LONGEST_NAME:
        raise NameFault(f"its name is longer than {LONGEST_NAME:,} bytes")
    parts = [part for part in path.split(b"/") if part not in (b"", b".")]
    if not path.startswith(b"./") or b".." in parts or not parts:
        raise NameFault("its name leads out of the run's folder")
    if path.endswith(b"/"):
        raise NameFault("its name is a folder's")
    if len(parts) > MOST_PARTS:
        raise NameFault(f"it lies below more than {MOST_PARTS} folders")
    if max(map(len, parts)) > LONGEST_PART:
        raise NameFault(f"a part of its name is longer than {LONGEST_PART} bytes")
    if parts[0].lower() == RESERVED.encode():
        raise NameFault("lumitui keeps the parts of a fetch under that name")
    try:
        return b"/".join(parts).decode()
    except UnicodeDecodeError:
        raise NameFault("its name is not UTF-8") from None


def shown(path: bytes | str) -> str:
    """Return a name for a message: without `./`, and a long one with its middle left out."""
    raw = path.encode("utf-8", "surrogateescape") if isinstance(path, str) else path
    text = raw.removeprefix(b"./")
    if len(text) > 4 * _SHOWN:
        text = text[:_SHOWN] + b"..." + text[-_SHOWN:]
    return text.decode("utf-8", "surrogateescape")
