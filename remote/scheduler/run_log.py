"""Reading the log of one attempt on a site: its end, any page, or new lines."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lumitui.remote.site.answer_fields import count, last_words
from lumitui.remote.site.errors import AnswerUnusable, RefusedError, folder_gone
from lumitui.remote.site.shell_text import quote
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Transport

_NO_LOG, _UNREADABLE = 44, 45
"""Exit codes of the script; tail, wc and the shell use others."""
_FOUND = f"[ -f {{path}} ] || {{{{ LC_ALL=C ls -d {{folder}} 2>&1; exit {_NO_LOG}; }}}}"
# busybox's wc would read the whole file; macOS has a different stat.
_SIZE = "$(stat -Lc %s {path} 2>/dev/null || wc -c <{path})"
# A log may grow while it is read: its size is read once, and bytes only up to it.
_END = f"""\
{_FOUND}
size={_SIZE} || exit {_UNREADABLE}; start=$((size > {{last}} ? size - {{last}} : 0))
echo $start; tail -c +$((start + 1)) {{path}} | head -c $((size - start))"""
LOG_BLOCK = 65_536
"""Pages begin at multiples of this many bytes, which dd finds without reading earlier ones."""
MOST_BLOCKS = 16
"""Maximum number of blocks per request."""
_PAGE = f"""\
{_FOUND}
size={_SIZE} || exit {_UNREADABLE}; echo $size
dd bs={LOG_BLOCK} skip={{first}} count={{count}} <{{path}} 2>/dev/null || :"""
_GROWS = "until [ -f {path} ]; do sleep 1; done; exec tail -c +{first} -f {path}"


def read_end(transport: Transport, path: str, last: int) -> tuple[int, bytes] | None:
    """Return at most the `last` bytes of a log with their offset; None without a log.

    Raises:
        RefusedError: the log cannot be read there, or the run's folder is gone.
        LinkError: the site cannot be reached, or its answer is not the end of a log.
    """
    script = _END.format(**_places(path), last=last)
    return _read(transport, script, path, last, "the end")


@dataclass(frozen=True)
class LogPage:
    """A part of a log."""

    start: int
    """Offset of its first byte."""
    data: bytes
    size: int
    """Total bytes of the log."""


def read_page(transport: Transport, path: str, start: int, length: int) -> LogPage | None:
    """Return the blocks of a log with `length` bytes from byte `start` on; None without a log.

    Takes one request of at most MOST_BLOCKS blocks.

    Raises:
        RefusedError: the log cannot be read there.
        LinkError: the site cannot be reached, or its answer is not a part of a log.
    """
    first = start // LOG_BLOCK
    blocks = min(MOST_BLOCKS, max(1, -(-(start + length - first * LOG_BLOCK) // LOG_BLOCK)))
    script = _PAGE.format(**_places(path), first=first, count=blocks)
    answer = _read(transport, script, path, blocks * LOG_BLOCK, "a page")
    if answer is None:
        return None
    size, data = answer
    return LogPage(first * LOG_BLOCK, data, max(size, first * LOG_BLOCK + len(data) if data else 0))


def _places(path: str) -> dict[str, str]:
    return {"path": quote(path), "folder": quote(path.rpartition("/")[0])}


@purpose("log")
def _read(
    transport: Transport, script: str, path: str, most: int, what: str
) -> tuple[int, bytes] | None:
    """Return the number and bytes printed by `script`; None without a log."""
    result = transport.run(script)
    if result.code == _NO_LOG and b"No such file" in result.out:
        raise folder_gone(path.rpartition("/")[0])
    if result.code == _NO_LOG:
        return None
    if result.code:
        words = last_words(result.err, result.out, default=f"exit status {result.code}")
        raise RefusedError(
            f"lumitui cannot read the log at the site: {words}.", f"The log is {path}."
        )
    head, _, data = result.out.partition(b"\n")
    number = count(head[:40].decode("ascii", "replace").strip())
    if number is None or len(data) > most:
        wrong = f"more than the {most} requested bytes" if number is not None else last_words(head)
        raise AnswerUnusable(
            f"The site answered with {wrong} instead of {what} of a log.",
            "Try again; if it happens again, check your shell startup files on the site.",
        )
    return number, data


@purpose("log")
def stream(
    transport: Transport, path: str, offset: int, stop: Callable[[], bool]
) -> Iterator[bytes]:
    """Yield a log from byte `offset` on, without end; b"" during silence and before it exists.

    Raises:
        LinkError: no connection could be made, or it was lost.
    """
    return transport.stream(_GROWS.format(path=quote(path), first=offset + 1), stop=stop)
