"""Pack a folder of images into shards that a training reads 50 times as fast.

A subfolder for each class, perhaps below `train` and `val`, becomes a folder for --data:
    python pack.py imagenet /scratch/…/imagenet-packed --workers 16
Without `train`, every tenth image is kept for the test. A packing that was stopped, even by kill
-9, goes on when it is started again. The same images give the same bytes.

Text becomes tokens, one for each byte:
    python pack.py --text books /scratch/…/books-packed

Exit code: 0 packed and verified; 1 an error; 2 wrong arguments or images; 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from data import packing
from data.photos import MODES, SIDE
from engine.arguments import count
from engine.exits import TrainingError


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Pack images into shards, or text into tokens.")
    add = parser.add_argument
    add("folder", type=Path, help="images: a subfolder for each class; or text")
    add("out", type=Path, help="folder to write to")
    add("--size", type=count, default=SIDE, help="pixels of a side (default: %(default)s)")
    add("--grey", action="store_true", help="one channel instead of three")
    add("--workers", type=count, default=len(os.sched_getaffinity(0)), help="default: all cores")
    add("--text", action="store_true", help="pack text files instead of images")
    return parser.parse_args()


class Bar:
    """A line on stderr that grows; nothing where stderr is no terminal."""

    def __init__(self) -> None:
        """Begin to count the time."""
        self._began = time.monotonic()
        self._first: int | None = None
        self._shown = sys.stderr.isatty()

    def __call__(self, done: int, total: int) -> None:
        """Show how many are done."""
        self._first = done if self._first is None else self._first
        seconds = time.monotonic() - self._began
        speed = (done - self._first) / seconds if seconds else 0
        if not self._shown:
            return
        left = f", {(total - done) / speed:.0f} s left" if speed else ""
        bar = "#" * (30 * done // total)
        words = f"\r[{bar:30}] {done:,} of {total:,} images, {speed:,.0f} a second{left}\033[K"
        print(words, end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """End the line."""
        if self._shown:
            print(file=sys.stderr)


def main() -> None:
    """Pack, and say in one sentence what there is."""
    args = arguments()
    if not args.folder.exists():
        raise TrainingError(f"There is no folder {args.folder}. Name one that has images.")
    if args.text:
        text = packing.pack_text(args.folder, args.out)
        print(f"{text.tokens:,} tokens of {text.files} files are in {args.out}.")
        return
    bar, began = Bar(), time.monotonic()
    channels = min(MODES) if args.grey else max(MODES)
    try:
        found = packing.pack(args.folder, args.out, (channels, args.size), args.workers, bar)
    finally:
        bar.close()
    speed = found.new / (time.monotonic() - began)
    how = f"{speed:,.0f} images/s" if found.new else "all were there"
    print(
        f"{found.images:,} images, {found.size / 1e9:.3f} GB in {found.shards} shards, are in "
        f"{args.out}, verified ({how})."
    )


if __name__ == "__main__":
    try:
        main()
    except (TrainingError, OSError) as error:
        print(f"pack.py: {error}", file=sys.stderr)
        sys.exit(error.code if isinstance(error, TrainingError) else 1)
    except KeyboardInterrupt:
        print(
            "pack.py: stopped. Run it again with the same arguments: it goes on.", file=sys.stderr
        )
        sys.exit(130)
