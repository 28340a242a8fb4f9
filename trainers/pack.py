"""Pack images into shards that a training run reads 50 times as fast.

A folder with one subfolder per class, optionally below `train` and `val`, becomes a folder for
--data: python pack.py imagenet /scratch/…/imagenet-packed --workers 16 So does a tar or a folder of
tars (WebDataset: 17.jpg and 17.cls), or an HDF5 file with `images` and `labels`. Without `train`,
every tenth image is kept for evaluation. Packing resumes if it was stopped, even by kill -9. The
same images give the same bytes.

Text becomes tokens, one per byte:
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
    add("folder", type=Path, help="images: a subfolder per class, tars, or HDF5; or text files")
    add("out", type=Path, help="folder to write to")
    add("--size", type=count, default=SIDE, help="pixels per side (default: %(default)s)")
    add("--grey", action="store_true", help="one channel instead of three")
    cores = len(os.sched_getaffinity(0))
    add("--workers", type=count, default=cores, help="threads (default: one per core)")
    add("--text", action="store_true", help="pack text files instead of images")
    return parser.parse_args()


def show(done: int, total: int) -> None:
    """Show the progress on stderr, if it is a terminal."""
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        print(f"\r{done:,} of {total:,} images\033[K", end=end, file=sys.stderr, flush=True)


def main() -> None:
    """Pack, and report the result in one sentence."""
    args = arguments()
    if not args.folder.exists():
        raise TrainingError(f"There is no folder {args.folder}. Give one that contains images.")
    if args.text:
        text = packing.pack_text(args.folder, args.out)
        print(f"{text.tokens:,} tokens of {text.files} files are in {args.out}.")
        return
    began = time.monotonic()
    channels = min(MODES) if args.grey else max(MODES)
    found = packing.pack(args.folder, args.out, (channels, args.size), args.workers, show)
    speed = found.new / (time.monotonic() - began)
    how = f"{speed:,.0f} images/s" if found.new else "all were already packed"
    print(
        f"{found.images:,} images, {found.size / 1e9:.3f} GB in {found.shards} shards, are in "
        f"{args.out}, verified ({how})."
    )


if __name__ == "__main__":
    code = 0
    try:
        main()
    except (TrainingError, OSError) as error:
        print(f"pack.py: {error}", file=sys.stderr)
        code = error.code if isinstance(error, TrainingError) else 1
    except KeyboardInterrupt:
        print(
            "pack.py: stopped. Run it again with the same arguments to continue.", file=sys.stderr
        )
        code = 130
    sys.stdout.flush()
    os._exit(code)  # do not wait for decoding threads
