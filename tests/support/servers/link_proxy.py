"""A bad network in front of sshd: delay, bandwidth, cuts, stalls, refusals."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from tests.support.places import CLUSTER

Direction = Literal["up", "down"]
"""To the server, or from it."""


@dataclass(frozen=True)
class LinkCounts:
    """What has passed the proxy: bytes to and from sshd, connections, turns, cuts, flipped bits."""

    up: int
    down: int
    connections: int
    turns: int
    cuts: int
    flips: int


@dataclass(frozen=True)
class LinkProxy:
    """A bad network in front of sshd; see tests/cluster/linkproxy.py for what the words do."""

    port: int
    control: int

    def _command(self, line: str) -> LinkCounts:
        with socket.create_connection(("127.0.0.1", self.control), timeout=5) as control:
            control.sendall(line.encode() + b"\n")
            return LinkCounts(**json.loads(control.makefile().readline()))

    def cut(self) -> LinkCounts:
        """Drop every connection now; new ones are welcome."""
        return self._command("cut")

    def cut_after(self, n: int, direction: Direction = "down") -> LinkCounts:
        """Drop every connection once `n` more bytes have passed in `direction`."""
        return self._command(f"cut-after {n} {direction}")

    def stall(self) -> LinkCounts:
        """Freeze traffic; connections stay."""
        return self._command("stall")

    def stall_after(self, n: int, direction: Direction = "down") -> LinkCounts:
        """Freeze traffic once `n` more bytes have passed in `direction`."""
        return self._command(f"stall-after {n} {direction}")

    def flip(self, every: int, *directions: Direction) -> LinkCounts:
        """Change a bit of every so many bytes that pass (both ways unless said); 0 ends it."""
        return self._command(f"flip {every} {' '.join(directions)}")

    def flow(self) -> LinkCounts:
        """End a stall."""
        return self._command("flow")

    def refuse(self) -> LinkCounts:
        """Drop every connection and refuse new ones."""
        return self._command("refuse")

    def accept(self) -> LinkCounts:
        """End a refusal."""
        return self._command("accept")

    def to(self, port: int) -> LinkCounts:
        """Send the next connections to `port`: another login host behind the same name."""
        return self._command(f"to {port}")

    def stats(self) -> LinkCounts:
        """Return the counts since the start or the last reset."""
        return self._command("stats")

    def reset(self) -> LinkCounts:
        """Set the counts to zero."""
        return self._command("reset")


@contextmanager
def link_proxy(to: int, rtt_ms: float = 0, mbit: float = 0) -> Iterator[LinkProxy]:
    """Put a network in front of port `to`: round-trip time in ms, bandwidth in Mbit/s."""
    argv = [sys.executable, str(CLUSTER / "linkproxy.py"), "--to", str(to)]
    argv += ["--rtt-ms", str(rtt_ms), "--mbit", str(mbit)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            ports = json.loads(process.stdout.readline())
            yield LinkProxy(port=ports["listen"], control=ports["control"])
        finally:
            process.terminate()
