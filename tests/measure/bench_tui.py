"""`make bench-tui`: the TUI and the verbs beside bare programs of the same libraries, in one run.

Beside the TUI: a Textual app that shows the same rows in a DataTable. Beside the verbs: a click app
with one verb. Every program runs once before it counts, so that all bytecode is there. Seconds
are the least of alternating rounds; those of the processor count, so that other work on the machine
counts little. RUNS=1000 measures another large history; SECONDS=5 shortens the idle phase.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from lumitui.app.history.history import History
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.measure.bench_history import fill
from tests.measure.pictures.terminal import Terminal
from tests.support.jobs.binding.binding_reports import EXACT, reports
from tests.support.jobs.made_runs import SPEC, a_run
from tests.support.places import ROOT

RUNS = int(os.environ.get("RUNS", "100000"))
SECONDS = float(os.environ.get("SECONDS", "30"))
ROUNDS, KEYS, RANKS = 5, 60, 8192
MEGABYTES = 100
"""The most that the TUI takes until its first paint, however many runs there are."""
OPEN = 20
"""Runs on this machine that nobody ends: they keep the refreshes going."""

BARE_TABLE = """
import sys
from textual.app import App
from textual.widgets import DataTable, Footer, Static

class Keyed(DataTable):
    BINDINGS = [("j", "cursor_down", "Down"), ("k", "cursor_up", "Up")]

class Bare(App):
    BINDINGS = [("q", "quit", "Quit")]
    def compose(self):
        yield Static("bare")
        yield Keyed(cursor_type="row")
        yield Footer()
    def on_mount(self):
        table = self.query_one(DataTable)
        table.add_columns(*"ABCDEFGH")
        for row in range(min(int(sys.argv[1]), 50)):
            table.add_row(f"row-{row:06d}", *["a cell"] * 7)

Bare().run()
"""
BARE_VERB = """
import click

@click.group()
def bare():
    pass

@bare.command()
def status():
    click.echo("There are no unfinished runs.")

bare()
"""


class Bench:
    """A folder with histories and the bare programs, and the table of what was measured."""

    def __init__(self, folder: Path) -> None:
        """Write the bare programs to `folder`."""
        self.folder = folder
        self.failed: list[str] = []
        (folder / "table.py").write_text(BARE_TABLE)
        (folder / "verb.py").write_text(BARE_VERB)
        (folder / "sites").mkdir()
        (folder / "sites" / "laptop.yaml").write_text("extends: laptop\npoll_seconds: 1\n")

    def environ(self, data: str) -> Mapping[str, str]:
        """Return the environment of a person whose history is in the folder `data`."""
        kept = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
        return kept | {
            "PYTHONPATH": str(ROOT / "src"),
            "PYTHONPYCACHEPREFIX": str(self.folder / "bytecode"),
            "LUMITUI_DATA_DIR": str(self.folder / data),
            "LUMITUI_CONFIG_DIR": str(self.folder),
            "TERM": "xterm-256color",
        }

    def tui(self, data: str) -> Terminal:
        """Start the TUI on a history."""
        argv = [sys.executable, "-m", "lumitui.app.cli.main"]
        return Terminal(argv, self.environ(data))

    def bare(self, rows: int) -> Terminal:
        """Start the bare table."""
        argv = [sys.executable, str(self.folder / "table.py"), str(rows)]
        return Terminal(argv, self.environ("none"))

    def verb(self, *words: str) -> float:
        """Run a verb, or the bare one without `words`; return the processor's seconds."""
        program = ["-m", "lumitui.app.cli.main", *words]
        argv = [sys.executable, *(program if words else [str(self.folder / "verb.py"), "status"])]
        process = subprocess.Popen(
            argv, env=self.environ("few"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{argv} ended with {process.returncode}")
        return usage.ru_utime + usage.ru_stime

    def row(self, what: str, seconds: Sequence[float], limit: float) -> None:
        """Print the seconds of lumitui and of what is beside it; `limit` is the promised ratio."""
        own, beside = seconds
        ratio = own / beside
        print(f"{what:44} {own * 1e3:8.1f} {beside * 1e3:8.1f} ms {ratio:6.2f} <= {limit:g}")
        if ratio > limit:
            self.failed.append(what)


def least(rounds: int, *actions: Callable[[], float]) -> list[float]:
    """Return the least of what each action returns; the first round does not count."""
    found = [[action() for action in actions] for _ in range(rounds + 1)]
    return [min(column) for column in zip(*found[1:], strict=True)]


def first_paint(bench: Bench, data: str, count: int) -> float:
    """Measure the processor's seconds to the newest run on the screen, and return them."""
    newest = f"{count - 1:06x}"
    memory = [0.0]

    def own() -> float:
        with bench.tui(data) as terminal:
            took = terminal.wait_for(newest)[1]
            memory[0] = terminal.memory()
            return took

    def beside() -> float:
        with bench.bare(count) as terminal:
            return terminal.wait_for("row-000000")[1]

    found = least(ROUNDS, own, beside)
    bench.row(f"first paint, {count:,} runs (processor)", found, 1.5)
    print(f"{f'memory, {count:,} runs':44} {memory[0]:8.1f} MB            <= {MEGABYTES}")
    if memory[0] > MEGABYTES:
        bench.failed.append(f"memory, {count:,} runs")
    return found[0]


def key_beside_bare(bench: Bench, what: str, data: str, sign: str, opening: str = "") -> None:
    """Measure the 95th percentile of a key on a screen that `opening` opens.

    The processor's seconds stand below: other work on the machine counts little in them.
    """
    processor = [0.0]

    def own() -> float:
        with bench.tui(data) as terminal:
            terminal.wait_for(sign)
            terminal.send(opening)
            terminal.idle(3)
            seconds, processor[0] = terminal.p95("jk", KEYS)
            return seconds

    def beside() -> float:
        with bench.bare(100) as terminal:
            terminal.wait_for("row-000000")
            terminal.idle(1)
            return terminal.p95("jk", KEYS)[0]

    bench.row(what, least(1, own, beside), 3)
    print(f"{'  of the processor':44} {processor[0] * 1e3:8.1f} ms             <= 30")


def proof_opens(bench: Bench) -> None:
    """Measure how long the proof of 8,192 ranks takes to be shown, beside a key of the bare app."""
    with bench.tui("ranks") as terminal:
        terminal.wait_for("proved-000001")
        terminal.idle(2)
        began = time.perf_counter()
        terminal.send("p")
        terminal.wait_for("nid006001")
        print(f"{'proof of 8,192 ranks opens':44} {(time.perf_counter() - began) * 1e3:8.1f} ms")


def idle(bench: Bench) -> None:
    """Measure the part of a processor that 100 ended runs take while nobody does anything."""

    def busy(terminal: Terminal, sign: str) -> float:
        terminal.wait_for(sign)
        terminal.idle(3)
        before = terminal.processor()
        terminal.idle(SECONDS)
        return (terminal.processor() - before) / SECONDS * 100

    with bench.tui("few") as terminal:
        own = busy(terminal, f"{99:06x}")
    with bench.bare(100) as terminal:
        beside = busy(terminal, "row-000000")
    print(f"{f'idle for {SECONDS:.0f} s, percent of a processor':44} {own:8.2f} {beside:8.2f} %")


def log_followed(bench: Bench) -> None:
    """Measure the part of a processor that a growing log of 2 GB takes at ten lines a second."""
    folder = bench.folder / "r1"
    folder.mkdir()
    history = History(bench.folder / "log" / "history.db")
    history.begin(a_run("r1", site="laptop", state=State.RUNNING, job_id="7", folder=str(folder)))
    history.close()
    with (folder / "attempt-1.out").open("ab", buffering=0) as log:
        log.truncate(2 << 30)  # sparse; what is appended is written behind it
        log.write(b"\n" + b"".join(b"%2d: step %d\n" % (n % 8, n) for n in range(60_000)))
        over = threading.Event()

        def write() -> None:
            while not over.wait(0.1):
                log.write(b" 3: epoch 1 step 700 loss 0.123 lr 0.001, 1234 samples/s\n")

        with bench.tui("log") as terminal:
            terminal.wait_for("r1")
            terminal.send("l")
            terminal.wait_for("2.1 GB")
            writer = threading.Thread(target=write)
            writer.start()
            terminal.idle(3)
            before = terminal.processor()
            terminal.idle(SECONDS)
            own = (terminal.processor() - before) / SECONDS * 100
            over.set()
            writer.join()
    print(f"{'a log of 2 GB followed at 10 lines/s':44} {own:8.2f} % <= 1.5")


def verbs(bench: Bench) -> None:
    """Measure the verbs beside a click app with one verb."""
    for word, limit in (("--version", 2.5), ("status", 3.0), ("history", 3.0)):
        found = least(ROUNDS * 2, partial(bench.verb, word), bench.verb)
        bench.row(f"lumitui {word} (processor)", found, limit)


def write_histories(folder: Path) -> None:
    """Write the histories that the screens are measured on."""
    fill(folder / "few" / "history.db", 100)
    fill(folder / "many" / "history.db", RUNS)
    fill(folder / "busy" / "history.db", 10_000)
    history = History(folder / "busy" / "history.db")
    for number in range(OPEN):
        run = a_run(f"open-{number:06x}", site="laptop", spec=SPEC, job_id=str(number + 1))
        history.begin(replace(run, created=time.time(), state=State.RUNNING))
    history.close()
    layout = replace(EXACT, nodes=RANKS // 8)
    history = History(folder / "ranks" / "history.db")
    run = replace(a_run("proved-000001"), layout=layout, state=State.DONE, job_id="7")
    items = [item | {"cores": "1-7"} if item["rank"] == 8000 else item for item in reports(layout)]
    history.begin(run)
    history.update(run.id, binding=json.dumps(items))
    history.close()


def main() -> int:
    """Print the table; fail when a promised ratio is passed."""
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name))
        write_histories(bench.folder)
        print(f"{'':44} {'own':>8} {'bare':>8}     {'ratio':>6}")
        verbs(bench)
        few, many = first_paint(bench, "few", 100), first_paint(bench, "many", RUNS)
        bench.row(f"first paint, {RUNS:,} runs beside 100", (many, few), 1.2)
        key_beside_bare(bench, "key p95 while a refresh runs, 10,000 runs", "busy", "open-")
        proof_opens(bench)
        key_beside_bare(bench, "key p95 in a proof of 8,192 ranks", "ranks", "proved-", "p")
        idle(bench)
        log_followed(bench)
    for what in bench.failed:
        print(f"{what}: more than promised", file=sys.stderr)
    return 1 if bench.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
