"""The log of one attempt on a site: its end at once, or as it grows."""

from collections.abc import Callable, Iterator

from lumitui.remote.errors import AnswerUnusable, RefusedError
from lumitui.remote.transport.fields import count, last_words
from lumitui.remote.transport.protocol import Transport
from lumitui.remote.transport.shell import quote

_NO_LOG, _UNREADABLE = 44, 45
"""Exit codes of the script; tail, wc and the shell itself use others."""
# A log grows while it is read: its size is asked for once, and the bytes are those up to it.
_END = f"""\
[ -f {{path}} ] || exit {_NO_LOG}
size=$(wc -c <{{path}}) || exit {_UNREADABLE}; start=$((size > {{last}} ? size - {{last}} : 0))
echo $start; tail -c +$((start + 1)) {{path}} | head -c $((size - start))"""
_GROWS = "until [ -f {path} ]; do sleep 1; done; exec tail -c +{first} -f {path}"


def read_end(transport: Transport, path: str, last: int) -> tuple[int, bytes] | None:
    """Return the offset of at most the `last` bytes of a log, and the bytes; None without a log.

    Raises:
        RefusedError: the log cannot be read there.
        LinkError: the site could not be asked, or its answer is not the end of a log.
    """
    result = transport.run(_END.format(path=quote(path), last=last))
    if result.code == _NO_LOG:
        return None
    if result.code:
        words = last_words(result.err, result.out, default=f"exit status {result.code}")
        raise RefusedError(f"The log cannot be read at the site: {words}.", f"It is {path}.")
    head, _, data = result.out.partition(b"\n")
    start = count(head[:40].decode("ascii", "replace").strip())
    if start is None or len(data) > last:
        wrong = f"more than the {last} bytes asked for" if start is not None else last_words(head)
        raise AnswerUnusable(
            f"The site does not answer with the end of a log, but with {wrong}.",
            "Try again; if it stays so, look at what your login files at the site do.",
        )
    return start, data


def stream(
    transport: Transport, path: str, offset: int, stop: Callable[[], bool]
) -> Iterator[bytes]:
    """Yield a log from byte `offset` on, without an end; b"" in silence, and before it is there.

    Raises:
        LinkError: no connection could be made, or it was lost.
    """
    return transport.stream(_GROWS.format(path=quote(path), first=offset + 1), stop=stop)
