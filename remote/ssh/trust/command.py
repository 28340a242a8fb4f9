"""Known host keys that a program prints (KnownHostsCommand)."""

import base64
import subprocess
import threading

from lumitui.remote.site.errors import LinkError
from lumitui.remote.ssh.config import Trust
from lumitui.remote.ssh.options.percent_tokens import expand
from lumitui.remote.ssh.trust.known_hosts import HostKey

_SECONDS = 30.0
_MOST_BYTES = 1 << 20


def command_lines(trust: Trust, shown: HostKey | None, reason: str) -> bytes:
    """Return what the command prints: lines of a known_hosts file; nothing without a command.

    Args:
        trust: names the command and the host.
        shown: the host's key; None before it is known.
        reason: `ORDER`, `HOSTNAME` or `ADDRESS`, as ssh_config(5) describes them.

    Raises:
        LinkError: the command cannot be run, or fails.
    """
    if not trust.command:
        return b""
    tokens = {
        **trust.tokens,
        "H": trust.name,
        "I": reason,
        "t": shown.type if shown else "NONE",
        "f": shown.fingerprint if shown else "NONE",
        "K": base64.b64encode(shown.blob).decode() if shown else "NONE",
    }
    program, *words = trust.command
    arguments = [expand("KnownHostsCommand", word, tokens) for word in words]
    try:
        return _output(program, arguments)
    except OSError as error:
        raise LinkError(
            f"The KnownHostsCommand for {trust.name} failed: {error.strerror or error}.",
            "Correct it in the ssh configuration; without it no host key is trusted.",
        ) from error


def _output(program: str, arguments: list[str]) -> bytes:
    """Return what the program prints, all of it: a line left out might revoke a key."""
    if not program.startswith("/"):
        raise OSError("its path must be absolute")
    with subprocess.Popen(
        [program, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        watch = threading.Timer(_SECONDS, process.kill)
        watch.start()
        try:
            data = process.stdout.read(_MOST_BYTES + 1)
            if len(data) > _MOST_BYTES:
                raise OSError(f"it prints more than {_MOST_BYTES} bytes")
            code = process.wait()
        finally:
            process.kill()
            watch.cancel()
    if code:
        reason = f"it ended with code {code}" if code > 0 else f"it took {_SECONDS:g} s"
        raise OSError(reason)
    return data
