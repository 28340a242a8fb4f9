"""What the bundled trainers cost on a CPU: `python -m tests.measure.bench_trainers [SECTION…]`.

Times are the processor's, of both sides in turns (ABBA), so that other work on the machine counts
little; what is compared is a ratio, and ratios are the limits that fail the bench. `--json` prints
the rows as one JSON object. A section is a module beside this one with `rows()`; nothing here says
how fast a model is on a GPU.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from tests.measure.bench_trainers.row import Row

SECTIONS = sorted(
    path.stem
    for path in Path(__file__).parent.glob("*.py")
    if not path.stem.startswith("_") and path.stem != "row"
)


def section(name: str) -> Callable[[], Iterator[Row]]:
    """Return what measures a section."""
    found: Callable[[], Iterator[Row]] = import_module(f"{__package__}.{name}").rows
    return found


def line(row: Row) -> str:
    """Return a row as it is printed."""
    limits = [f"at most {row.most:g}"] if row.most is not None else []
    limits += [f"at least {row.least:g}"] if row.least is not None else []
    end = f"   ({' and '.join(limits)}{': BROKEN' if row.broken else ''})" if limits else ""
    return (
        f"{row.name:<44}{row.value:>12.4g} {row.unit:<10}"
        f"{row.ratio:>7.3f} x {row.beside:.4g}, {row.what}{end}"
    )


def main() -> int:
    """Measure and print; 1 when a limit is broken."""
    parser = argparse.ArgumentParser(prog="bench-trainers")
    parser.add_argument("sections", nargs="*", choices=[[], *SECTIONS], metavar="SECTION")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found: dict[str, list[Row]] = {}
    for name in asked.sections or SECTIONS:
        found[name] = []
        for row in section(name)():
            found[name].append(row)
            if not asked.json:
                print(line(row), flush=True)
    if asked.json:
        told = {
            name: [asdict(row) | {"ratio": row.ratio, "broken": row.broken} for row in rows]
            for name, rows in found.items()
        }
        print(json.dumps(told))
    return int(any(row.broken for rows in found.values() for row in rows))


if __name__ == "__main__":
    sys.exit(main())
