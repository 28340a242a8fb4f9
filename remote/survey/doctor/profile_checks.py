"""Checks a profile by itself: errors and doubtful values, with their lines."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from lumitui.remote.site import walltime
from lumitui.remote.site.core_sets import format_cores
from lumitui.remote.site.finding import Finding, Severity
from lumitui.remote.site.profile import Site
from lumitui.remote.site.reading.validation import Mistakes
from lumitui.remote.site.reading.yaml_document import Document, NotYaml, Place, read_document
from lumitui.remote.site.sites import Sites
from lumitui.remote.site.source_position import Position

_GIB = {"": 1 / 1024, "K": 1 / 1048576, "M": 1 / 1024, "G": 1.0, "T": 1024.0}
_SOURCE = re.compile(r"#.*\b(source|guess|choice)\b", re.IGNORECASE)
_POLITE = 15
"""Fewest seconds between two polls that do not burden a login node."""
_ENDLESS = 100 * 86_400
_RATES = {
    "node": "add `per_node_hour: 1`",
    "slice": "add `per_slice_hour: 1`",
    "sum": "add `per_gpu_hour: 1`",
}
"""The key for a missing price, by the kind of billing."""
_SAY_SOURCE = "add one above it, with a page or a command"


Found = tuple[Place, str]
"""A place in the profile, and why its value is doubtful."""
_Rule = Callable[[Site, Document], Iterator[Found]]


def profile_remarks(path: Path, folders: Sequence[Path]) -> tuple[Finding, ...]:
    """Return the problems of the profile in a file, by line.

    `folders` hold the profiles that it may extend. The file's name is the site's name.
    """
    misnamed: tuple[Finding, ...] = ()
    try:
        document = read_document(path)
        misnamed = tuple(_of_name(path, document))
        site = _load(path, folders)
    except Mistakes as error:
        own = [one for one in error.mistakes if one.where.startswith(f"{path}:")]
        other = "" if own else "in a profile that it extends: "
        mistakes = [
            _finding(one.line if own else 1, "error", f"{other}{one.keys}: {one.message}")
            for one in own or error.mistakes
        ]
        return tuple(sorted((*misnamed, *mistakes), key=lambda one: one.at.line))
    except NotYaml as error:
        return (_finding(error.line, "error", error.message),)
    remarks = [
        _finding(document.line(place), severity, _said(place, words))
        for severity, rules in _SEVERITIES.items()
        for rule in rules
        for place, words in rule(site, document)
    ]
    return tuple(sorted({*misnamed, *remarks}, key=lambda one: (one.at.line, one.message)))


def _of_name(path: Path, document: Document) -> Iterator[Finding]:
    """Yield an error if `name:` differs from the file's name, by which runs find their site."""
    name = document.data.get("name", path.stem)
    if name != path.stem:
        words = f"name: {name!r} differs from the file's name, {path.stem!r}; correct or remove it"
        yield _finding(document.line(("name",)), "error", words)


def _unusual(site: Site, document: Document) -> Iterator[Found]:
    """Yield what may be intended: notes, which need no change."""
    if site.default_container and not {"extends", "default_container"} & document.data.keys():
        words = f"a job that names no container runs in {site.default_container}, the first; "
        yield ("containers",), f"{words}`default_container:` names another, or `none`"
    login = site.hosts.login
    if login and not set(".:") & set(login) and not site.hosts.ssh_config:
        words = f"{login!r} is not a full host name; if others use this profile, write the full "
        yield ("hosts", "login"), f"{words}name and `port:`, since only you know the alias"
    node, lists = site.node, site.node.cores_of_gpu
    unassigned = node.usable_cores - frozenset[int]().union(*lists)
    if lists and len(lists[0]) * node.gpus + node.gpus <= len(node.usable_cores):
        words = f"cores {format_cores(unassigned)} are in no list, so masks leave them idle; "
        yield ("node", "gpu_cores"), f"{words}share them out if programs need them"


def _finding(line: int, severity: Severity, message: str) -> Finding:
    return Finding("profile", severity, message, at=Position(line))


def _said(place: Place, words: str) -> str:
    key = ".".join(part for part in place if isinstance(part, str))
    return f"{key}: {words}" if key else words


def _load(path: Path, folders: Sequence[Path]) -> Site:
    """Return the site of a file that may be in no folder of profiles."""
    # A wrong name hides no other finding; lines keep their numbers.
    name = f"name: {json.dumps(path.stem)}"
    text = re.sub(r"^name:.*$", lambda _: name, path.read_text("utf-8"), flags=re.MULTILINE)
    return Sites(folders, {path: text}).load(path.stem)


# -- doubtful values: each rule yields places and sentences


def _cores(site: Site, document: Document) -> Iterator[Found]:
    node = site.node
    if node.on_cpu:
        return
    usable = len(node.usable_cores)
    if site.cores_per_gpu * node.gpus > usable:
        words = (
            f"{site.cores_per_gpu} for each of {node.gpus} GPUs is more than the {usable} cores "
        )
        words += f"that a job may use; write at most {usable // node.gpus}"
        yield ("cores_per_gpu",), words
    if not node.gpu_cores:
        words = "missing, so lumitui cannot bind ranks or prove their binding; "
        words += f"`lumitui site check {site.name} --probe` measures them"
        yield ("node", "gpu_cores"), words
        return
    sizes = sorted({len(cores) for cores in node.cores_of_gpu})
    if len(sizes) > 1:
        words = " and ".join(map(str, sizes))
        words = f"ranks get {words} cores, and the rank with the fewest slows down the others"
        words += "; give each GPU the same number"
        yield ("node", "gpu_cores"), words
    elif sizes[0] > site.cores_per_gpu and len(node.usable_cores) >= sizes[0] * node.gpus:
        yield (
            ("cores_per_gpu",),
            f"{site.cores_per_gpu}, but each GPU is near {sizes[0]} cores; write that number",
        )
    for key in ("gpu_bus", "gpu_numa"):
        if not getattr(node, key):
            words = "missing, so lumitui cannot prove the order of the GPUs; "
            yield ("node", key), f"{words}`lumitui site check {site.name} --probe` measures it"
    numbers = Counter(node.gpu_bus)
    if twice := [bus for bus in numbers if numbers[bus] > 1]:
        yield ("node", "gpu_bus"), f"{', '.join(twice)} is listed twice; each GPU has its own"


def _memory(site: Site, document: Document) -> Iterator[Found]:
    have = site.node.memory_gib
    for key, share in (("memory_per_gpu", site.node.gpus), ("memory_per_node", 1)):
        text = getattr(site, key)
        match = re.fullmatch(r"(\d{1,9})([KMGT]?)", text)
        if text and not match:
            yield (key,), f"{text!r} is not an amount of memory; write it like 60G"
        elif match and int(match[1]) * _GIB[match[2]] * share > have:
            words = f"{text} for all GPUs of a node exceeds its {have} GiB"
            yield (key,), f"{words}; write at most {int(have / share)}G"


def _partitions(site: Site, document: Document) -> Iterator[Found]:
    if not site.partitions:
        yield ("partitions",), "empty, so lumitui cannot send jobs; `sinfo` lists the cluster's"
    for name, item in site.partitions.items():
        at: Place = ("partitions", name)
        if (item.max_gpus_per_node or 0) > site.node.gpus:
            yield (
                (*at, "max_gpus_per_node"),
                f"a node has only {site.node.gpus}; write that number, or remove the key",
            )
        if item.min_gpus and item.max_gpus and item.min_gpus > item.max_gpus:
            yield (*at, "min_gpus"), f"exceeds max_gpus, {item.max_gpus}; correct one of them"
        if item.grows_to == name:
            yield (
                (*at, "grows_to"),
                "is the partition itself; choose a larger one, or remove the key",
            )
        larger = site.partitions.get(item.grows_to or "")
        if larger and larger.max_nodes < item.max_nodes:
            yield (*at, "grows_to"), f"{item.grows_to} is smaller than {name}; choose a larger one"
        rates = [rate for key, rate in item.billing.model_dump().items() if key.startswith("per_")]
        if site.scheduler == "slurm" and not any(rates):
            yield (
                (*at, "billing"),
                f"has no rates, so lumitui cannot show prices; {_RATES[item.billing.kind]}",
            )
        limit = walltime.seconds_of(item.max_time)
        if limit >= _ENDLESS:
            yield (
                (*at, "max_time"),
                "means no limit, which few sites intend; write the longest allowed",
            )
        if any(walltime.seconds_of(one.max_time) > limit for one in item.max_time_of):
            yield (
                (*at, "max_time_of"),
                "allows a longer time than max_time; set max_time to the longest",
            )


def _host(site: Site, document: Document) -> Iterator[Found]:
    if site.scheduler != "slurm":
        return
    if not site.hosts.fingerprints:
        words = "has no fingerprints, so lumitui cannot check the host key of the first login; "
        words += "add what the site publishes: `fingerprints: {ed25519: 'SHA256:…'}`"
        yield ("hosts",), words
    if site.poll_seconds < _POLITE:
        words = f"a query every {site.poll_seconds:g} s burdens a shared login node; "
        words += f"write {_POLITE} or more"
        yield ("poll_seconds",), words
    if "{user}" not in site.work_root and "{home}" not in site.work_root:
        yield (
            ("work_root",),
            "has no {user}, so all users would share one folder; add it to the path",
        )
    example = site.account.example
    if example and not re.search(site.account.pattern, example):
        yield (
            ("account", "example"),
            f"{example!r} does not match account.pattern; correct one of them",
        )


def _words(site: Site, document: Document) -> Iterator[Found]:
    data = site.model_dump()
    for number, key in enumerate(site.unverified):
        if not _has(data, key.split(".")):
            yield ("unverified", number), f"{key} is not a key of this profile; remove it"
    if site.retired and not site.replaced_by:
        yield ("retired",), "set `replaced_by:` to the site's successor"


def _has(data: object, keys: Sequence[str]) -> bool:
    for at, key in enumerate(keys):
        if not isinstance(data, dict):
            return False
        if ".".join(keys[at:]) in data:  # a name may have dots
            return True
        if key not in data:
            return False
        data = data[key]
    return True


def _sources(site: Site, document: Document) -> Iterator[Found]:
    """Yield the blocks of facts without a source."""
    if site.scheduler != "slurm":
        return
    try:
        rows = Path(document.name).read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    if "extends" not in document.data and not any(_SOURCE.search(row) for row in rows):
        yield (), f"no `# source:` comment names the origin of a fact; {_SAY_SOURCE}"
        return
    for key in ("node", "partitions", "containers", "environment"):
        block = document.data.get(key)
        if not isinstance(block, dict) or not block:
            continue
        first = document.line((key,))
        last = max(document.line((key, str(name))) for name in block)
        end = next(
            (at for at in range(last, len(rows)) if re.match(r"[^\s#]", rows[at])), len(rows)
        )
        above = first - 1
        while above and rows[above - 1].startswith("#"):
            above -= 1
        if not any(_SOURCE.search(row) for row in rows[above:end]):
            yield (key,), f"no `# source:` comment names the origin of these facts; {_SAY_SOURCE}"


RULES: tuple[_Rule, ...] = (
    _cores, _memory, _partitions, _host, _words, _sources,
)  # fmt: skip
"""The checks for doubtful values; a new check is one function here."""
_SEVERITIES: dict[Severity, tuple[_Rule, ...]] = {"warning": RULES, "note": (_unusual,)}
