"""What users see, through the command line alone: one entry each, with its hash and a few words.

The words are what a person would ask about first (the findings of a script, the cause of a
failure), so that a change can be described without the old text.
"""

import contextlib
import hashlib
import io
import json
import os
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import click

from lumitui.app.cli.main import lumitui
from lumitui.app.cli.process import run_verb
from lumitui.app.history.history import History
from lumitui.app.job import examples
from lumitui.app.job.settings import settings
from tests.exam.corpus import asked_once, benign_logs, excerpts, rewritten
from tests.support.gallery.histories import typical
from tests.support.jobs.adopted.corpus import texts
from tests.support.jobs.sites.accounts import own_account
from tests.support.jobs.sites.golden_jobs import golden_scripts
from tests.support.jobs.sites.official_jobs import sites
from tests.support.places import GOLDEN, ROOT

NOW = 1_764_000_000.0
"""The time of the filled history, seconds since the epoch."""
GROUPS = {"preview": 26, "scripts": 110, "why": 54}
"""How many entries these kinds have: about ten things share one, drawn by the hash of their names,
so that a new thing changes one entry."""


@dataclass(frozen=True)
class Entry:
    """One thing that users see."""

    name: str
    digest: str
    words: str = ""

    @property
    def line(self) -> str:
        """Its line in the file of its kind."""
        return f"{self.name}\t{self.digest}\t{self.words}"


def entry(name: str, text: str, words: str = "") -> Entry:
    """Return the entry of a text."""
    return Entry(_one_line(name), _digest(text), _one_line(words))


def previews(folder: Path, every: int) -> Iterator[Entry]:
    """Yield the bytes of `preview --all` for each example at each site that takes it."""
    for name, site in ((name, site) for site in sites().values() for name in examples.examples()):
        place = folder / f"{name}@{site.name}"
        if not _taken("preview", place.name, every):
            continue
        place.mkdir()
        account = ["--account", own_account(site)] if site.account.required else []
        kind = ["--example", name]
        if name == examples.OWN_SCRIPT:
            kind = ["--script", "train.py"]
            (place / "train.py").write_text("print()\n")
        job = str(place / "job.yaml")
        made = _printed("new", "--site", site.name, *kind, *account, "--output", job)
        shown = _printed("preview", "--all", job)
        if shown:
            text = _without(made + shown, folder)
            yield entry(place.name, text)


def scripts(folder: Path, every: int) -> Iterator[Entry]:
    """Yield what `lint --json` finds in each public script of the tests, and what `import` makes.

    Its digest has two halves: of the findings, and of the job file with the report.
    """
    names = _written(folder, every)
    linted = json.loads(_printed("lint", "--json", *names))["data"]
    found = {one["script"]: one["findings"] for one in linted}
    for path, name in names.items():
        job = Path(path).with_suffix(".yaml")
        said = _printed("import", path, "--site", "lumi", "--json", "-o", str(job))
        text = job.read_text("utf-8") if job.exists() else ""
        halves = (json.dumps(found[path], sort_keys=True), said + text)
        rules = [item["rule"] for item in found[path]]
        words = " ".join([*rules, *re.findall(r"(?m)^\w+:", text)])
        digest = "".join(_digest(_without(half, folder)) for half in halves)
        yield Entry(_one_line(name), digest, words)


def causes(folder: Path, every: int) -> Iterator[Entry]:
    """Yield the causes that `why` names for each log."""
    logs = [
        (item.id, "\n".join(item.lines), item.state, item.exit_code)
        for item in (*excerpts(), *rewritten(), *asked_once())
    ]
    logs += [(f"benign {at}", text, "failed", 1) for at, text in enumerate(benign_logs())]
    for name, text, state, code in logs:
        if not _taken("why", name, every):
            continue
        path = folder / "log"
        path.write_text(text + "\n", encoding="utf-8", errors="surrogateescape")
        exit_code = ["--exit", str(code)] if code else []
        reply = _printed("why", "--log", str(path), "--state", state, "--json", *exit_code)
        found = json.loads(reply).get("data", {"why": []})["why"]
        yield entry(name, _without(reply, folder), " ".join(one["id"] for one in found))


def helps(folder: Path, every: int) -> Iterator[Entry]:
    """Yield the help of each verb, and of lumitui itself."""
    for words, command in [((), lumitui), *_verbs(lumitui)][::every]:
        options = [name for one in command.params for name in (*one.opts, *one.secondary_opts)]
        yield entry(" ".join(("lumitui", *words)), _printed(*words, "--help"), " ".join(options))


def schemas(folder: Path, every: int) -> Iterator[Entry]:
    """Yield the schemas that `lumitui schema` prints."""
    for kind in ("job", "site")[::every]:
        text = _printed("schema", kind)
        yield entry(kind, text, " ".join(json.loads(text).get("properties", {})))


def replies(folder: Path, every: int) -> Iterator[Entry]:
    """Yield what each verb that reads prints with `--json` on a filled history."""
    with mock.patch.object(time, "time", return_value=NOW):
        history = History(settings().history)
        chosen = typical(history, folder)
        runs = history.begun_since(0)
        history.close()
        reading = [
            ["history"],
            ["history", "--filter", "state:failed"],
            ["site", "show"],
            ["site", "show", "lumi"],
            ["rules"],
        ]
        reading += [["bind", "lumi"], ["new", "--list"], ["grid", chosen], ["scaling", chosen]]
        reading += [["diff", runs[0], runs[-1]]]
        reading += [["show", run] for run in runs]
        for words in reading[::every]:
            reply = _without(_printed(*words, "--json"), folder)
            yield entry(" ".join(words), reply, f"{len(reply)} characters")


def golden(folder: Path, every: int) -> Iterator[Entry]:
    """Yield the scripts of which five can be read in `tests/golden`."""
    for path, text in list(golden_scripts().items())[::every]:
        yield entry(path.relative_to(GOLDEN).as_posix(), text)


KINDS: Mapping[str, Callable[[Path, int], Iterator[Entry]]] = {
    "preview": previews,
    "scripts": scripts,
    "why": causes,
    "help": helps,
    "schema": schemas,
    "json": replies,
    "golden": golden,
}
"""Each has a file here, with a line for each entry."""


def collect(kind: str, folder: Path, every: int = 1) -> dict[str, Entry]:
    """Return the entries of a kind by their names; every `every`-th of them.

    `folder` is empty: the user's own folders are made there.
    """
    places = ("config", "data", "system")
    mine = {f"LUMITUI_{name.upper()}_DIR": str(folder / name) for name in places}
    place = folder / "place"
    for path in (*map(Path, mine.values()), place):
        path.mkdir()
    with mock.patch.dict(os.environ, {**mine, "COLUMNS": "80", "TZ": "UTC"}):
        time.tzset()
        found = KINDS[kind](place, every)
        return {one.name: one for one in (_grouped(kind, found) if kind in GROUPS else found)}


def _group(kind: str, name: str) -> int:
    return int(_digest(name), 16) % GROUPS[kind]


def _taken(kind: str, name: str, every: int) -> bool:
    return _group(kind, name) % every == 0


def _grouped(kind: str, found: Iterable[Entry]) -> Iterator[Entry]:
    """Yield an entry for each group: who is in it, each with four digits of its hash, and words."""
    groups = defaultdict[int, list[Entry]](list)
    for one in found:
        groups[_group(kind, one.name)].append(one)
    for number, members in sorted(groups.items()):
        counts = Counter(word for one in members for word in one.words.split())
        words = [f"{one.name.replace(' ', '_')}#{_digest(one.digest)[:4]}" for one in members]
        words += [f"{word}={count}" for word, count in counts.items()]
        digest = _digest(" ".join(one.digest for one in members))
        yield Entry(f"{number:03}", digest, " ".join(words))


def _written(folder: Path, every: int) -> dict[str, str]:
    """Write the scripts of the corpus that are taken; return each one's name by its path."""
    found, times = dict[str, str](), Counter[str]()
    for name, text, _ in texts():
        times[name] += 1
        found.setdefault(text, f"{name} {times[name]}" if times[name] > 1 else name)
    names = {}
    taken = ((text, name) for text, name in found.items() if _taken("scripts", name, every))
    for text, name in taken:
        path = folder / f"{_digest(text)}.sh"  # a job's name comes from it: it must stay
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
        names[str(path)] = name
    return names


def _verbs(
    group: click.Group, above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        if command is not None:
            yield (*above, name), command
            if isinstance(command, click.Group):
                yield from _verbs(command, (*above, name))


def _printed(*words: str) -> str:
    """Return what a verb prints on stdout."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        run_verb(lumitui, list(words))
    out.seek(0)
    return out.read()


def _without(text: str, folder: Path) -> str:
    """Return a text without what differs from one machine or time to the next."""
    plain = text.replace(str(folder), "/place").replace(str(ROOT), "/lumitui")
    return re.sub(r"/[^\s\"']*/place\b", "/place", plain)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:12]


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
