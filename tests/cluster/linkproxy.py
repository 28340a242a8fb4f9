#!/usr/bin/env python3
"""A bad network in front of one TCP port on loopback: delay, bandwidth, stalls, cuts, counts.

    linkproxy.py --to 2422 --listen 2522 --control 2523 --rtt-ms 50 --mbit 100

Port 0 takes a free one; the first line on stdout is JSON, `{"listen": 40001, "control": 40002}`.
Commands on the control port, one a line, each answered by the counts as one line of JSON:

| `cut`                   | drop every connection now; new ones are welcome                    |
| `cut-after N [up,down]` | the same once N more bytes have passed that way (down unless said) |
| `refuse`, `accept`      | drop every connection and refuse new ones; the end of that         |
| `stall`, `flow`         | freeze traffic both ways, connections stay; the end of that        |
| `stall-after N [up,down]` | freeze it once N more bytes have passed that way                 |
| `flip N [up,down]`      | change a random bit of every N bytes or so that pass that way;     |
|                         | 0 ends it                                                          |
| `to PORT`               | the next connections go to that port                               |
| `stats`, `reset`        | nothing but the answer; set the counts to zero                     |

Counts: bytes `up` (to the server) and `down`, `connections`, `turns` (traffic changes its direction
to up, so n round trips one after the other are about n), `cuts` and `flips`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import time
from dataclasses import asdict, dataclass, field

CHUNK = 65536


@dataclass
class Counts:
    """What has passed since the start or the last reset."""

    up: int = 0
    down: int = 0
    connections: int = 0
    turns: int = 0
    cuts: int = 0
    flips: int = 0


@dataclass
class Link:
    """State of the network: its quality, the connections on it, what is to happen to them."""

    delay: float
    bytes_per_second: float
    to: int
    counts: Counts = field(default_factory=Counts)
    writers: set[asyncio.StreamWriter] = field(default_factory=set)
    refusing: bool = False
    flowing: asyncio.Event = field(default_factory=asyncio.Event)
    last_way: str = ""
    allowance: dict[str, int] = field(default_factory=dict)  # bytes left before a cut, by way
    until_stall: dict[str, int] = field(default_factory=dict)
    between_flips: dict[str, int] = field(default_factory=dict)  # bytes, on the average, by way
    until_flip: dict[str, int] = field(default_factory=dict)

    def cut(self, flushed: asyncio.StreamWriter | None = None) -> None:
        """Drop every connection; `flushed` still delivers what was written to it."""
        self.counts.cuts += 1
        self.allowance.clear()
        self.until_stall.clear()
        for writer in list(self.writers):
            if writer is flushed:
                writer.close()
            else:
                writer.transport.abort()
        self.writers.clear()

    async def deliver(self, data: bytes, writer: asyncio.StreamWriter, way: str) -> None:
        """Hand bytes on, and cut the link when that was the last of the allowance."""
        data = self.flipped(data, way)
        left = self.allowance.get(way)
        if left is not None:
            data = data[:left]
            self.allowance[way] = left - len(data)
        if writer.transport.is_closing():
            return
        writer.write(data)
        setattr(self.counts, way, getattr(self.counts, way) + len(data))
        if left is not None and left - len(data) <= 0:
            self.cut(flushed=writer)
        else:
            await writer.drain()

    def flipped(self, data: bytes, way: str) -> bytes:
        """Return `data` with a bit changed wherever it is time for one."""
        every = self.between_flips.get(way, 0)
        if not every:
            return data
        changed, at = bytearray(data), self.until_flip[way]
        while at < len(data):
            changed[at] ^= 1 << random.randrange(8)
            self.counts.flips += 1
            at += random.randint(1, 2 * every)
        self.until_flip[way] = at - len(data)
        return bytes(changed)

    async def pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: str
    ) -> None:
        """Move one direction of one connection, each chunk at the time a slow line would."""
        queue: asyncio.Queue[tuple[float, bytes] | None] = asyncio.Queue(maxsize=4096)

        async def send() -> None:
            clock = 0.0
            while (item := await queue.get()) is not None:
                due, data = item
                if self.bytes_per_second:
                    clock = max(clock, due) + len(data) / self.bytes_per_second
                    due = clock
                if (wait := due - time.monotonic()) > 0:
                    await asyncio.sleep(wait)
                await self.flowing.wait()
                if (left := self.until_stall.get(way)) is not None:
                    self.until_stall[way] = left - len(data)
                    if left < len(data):
                        await self.deliver(data[:left], writer, way)
                        data = data[left:]
                        self.until_stall.clear()
                        self.flowing.clear()
                        await self.flowing.wait()
                await self.deliver(data, writer, way)
            writer.close()

        sender = asyncio.create_task(send())
        with contextlib.suppress(ConnectionError):  # a dropped connection is this program's trade
            while data := await reader.read(CHUNK):
                if self.last_way != way:
                    self.last_way = way
                    self.counts.turns += way == "up"
                await queue.put((time.monotonic() + self.delay, data))
        await queue.put(None)
        with contextlib.suppress(ConnectionError):
            await sender

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of a client."""
        if self.refusing:
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.to)
        except OSError:
            writer.transport.abort()
            return
        self.counts.connections += 1
        self.writers |= {writer, far_writer}
        await asyncio.gather(
            self.pump(reader, far_writer, "up"), self.pump(far_reader, writer, "down")
        )
        self.writers -= {writer, far_writer}

    def command(self, line: str) -> str:
        """Carry out one command of the control port; the answer."""
        word, *rest = line.split()
        if word == "cut":
            self.cut()
        elif word == "cut-after":
            self.allowance = {rest[1] if len(rest) > 1 else "down": int(rest[0])}
        elif word == "refuse":
            self.refusing = True
            self.cut()
        elif word == "accept":
            self.refusing = False
        elif word == "stall":
            self.flowing.clear()
        elif word == "stall-after":
            self.until_stall = {rest[1] if len(rest) > 1 else "down": int(rest[0])}
        elif word == "flip":
            every = int(rest[0])
            for way in rest[1:] or ("up", "down"):
                self.between_flips[way] = every
                self.until_flip[way] = random.randrange(2 * every) if every else 0
        elif word == "flow":
            self.until_stall.clear()
            self.flowing.set()
        elif word == "to":
            self.to = int(rest[0])
        elif word == "reset":
            self.counts = Counts()
        elif word != "stats":
            return json.dumps({"error": f"unknown command {word}"})
        return json.dumps(asdict(self.counts))

    async def control(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the commands of one test."""
        while line := (await reader.readline()).decode().strip():
            writer.write((self.command(line) + "\n").encode())
            await writer.drain()
        writer.close()


async def main() -> None:
    """Listen until the process is ended."""
    parser = argparse.ArgumentParser(description="A bad network in front of one TCP port.")
    parser.add_argument("--to", type=int, default=2422)
    parser.add_argument("--listen", type=int, default=0)
    parser.add_argument("--control", type=int, default=0)
    parser.add_argument("--rtt-ms", type=float, default=0)
    parser.add_argument("--mbit", type=float, default=0)
    a = parser.parse_args()
    link = Link(delay=a.rtt_ms / 2000, bytes_per_second=a.mbit * 125_000, to=a.to)
    link.flowing.set()
    serving = await asyncio.start_server(link.serve, "127.0.0.1", a.listen)
    steering = await asyncio.start_server(link.control, "127.0.0.1", a.control)
    ports = {
        "listen": serving.sockets[0].getsockname()[1],
        "control": steering.sockets[0].getsockname()[1],
    }
    print(json.dumps(ports), flush=True)
    await asyncio.gather(serving.serve_forever(), steering.serve_forever())


if __name__ == "__main__":
    asyncio.run(main())
