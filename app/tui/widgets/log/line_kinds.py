"""The kind of a log line: an error, a warning, or noise to fold. Pure."""

import re
from collections import Counter
from dataclasses import dataclass, field

from rich.style import Style

from lumitui.app.explain import words
from lumitui.app.runs import ERROR_PATTERN, Fold

DIM = Style(dim=True)
LEAST = 3
"""Minimum consecutive noise lines to fold: folding two would save little."""
_PLAIN = Style()
_NUMBER = Style(color="cyan")
_FIGURES = re.compile(
    r"(?P<rule>[|│])|loss\b['\"]?\s*[:=]?\s*(?P<value>\d[\d.e+-]*)"
    r"|(?P<rate>\d[\d.,]*k?)(?= ?\w+/s\b)",
    re.IGNORECASE,
)
"""The separators and important values in a training run's step lines."""
_ERROR = re.compile(
    rf"{ERROR_PATTERN}|Traceback \(most recent call last\)|\b(?:ERROR|CRITICAL|FATAL)\b"
    r"|\b(?:[Ee]rror|[Ff]atal): |^E\d{4} "
)
_WARNING = re.compile(r"\bWARN(?:ING)?\b|\w*[Ww]arning: |^\[W[ \d]|^W\d{4} ")
_RED, _YELLOW = Style(color="red"), Style(color="yellow")

_WARNS = "Python warnings"
_BEGINS = re.compile(
    r"(?P<cpu_bind>(?:slurmstepd: )?(?:cpu|gpu|mem)[-_]bind\b)"
    r"|(?P<srun>srun: (?!error|[Ww]arning|fatal))"
    r"|(?P<MIOpen>MIOpen\(HIP\): (?:Info|Warning)\b)"
    r"|(?P<torchrun>\*{20,}$|Setting OMP_NUM_THREADS)"
    r"|(?P<Gloo>\[Gloo\] Rank \d+ is connected)"
    r"|(?P<libdrm>/\S*/amdgpu\.ids: No such file)"
    r"|(?P<TensorFlow>WARNING: All log messages before absl::)"
    r"|(?P<Python_warnings>/\S*/(?:site|dist)-packages/(?:torch|torchvision|transformers|datasets"
    r"|accelerate|deepspeed|lightning|pytorch_lightning|numpy|huggingface_hub|timm|apex|flash_attn"
    r"|tensorflow|keras|triton|xformers|diffusers|peft|trl)/\S*\.py:\d+: \w*Warning: )"
)
"""The starts of noise lines after their labels, by writer."""
_INSIDE = {
    "CCL ": ("NCCL", re.compile(r"(?:\S.{0,80} )?[NR]CCL (?:INFO|version)\b")),
    "distributed": (
        "torchrun",
        re.compile(
            r".{0,80}torch[./]distributed[./]run\S*(?: \[WARNING\])? ?(?:\*{20,}|Setting OMP|$)"
        ),
    ),
    " I ": ("TensorFlow", re.compile(r"\S+ \S+ I (?:tensorflow|external)/")),
}
"""The starts after a time or a node: searching them first is faster."""


@dataclass(slots=True, eq=False)
class ShownLine:
    """A displayed line. A progress bar's line is updated in place."""

    offset: int
    """Byte of the log at which the line begins."""
    text: str
    """Text without control characters and colours."""
    source: str
    """The labels before the text, such as `3:`, or ""."""
    rank: int | None
    label: int
    """Number of characters of `text` that are labels."""
    spans: tuple[tuple[int, int, Style], ...] = ()
    """Coloured parts of `text`: start, end (exclusive), style."""
    fold: Fold | None = None
    """The traceback that contains the line, if several ranks have the same one."""
    noise: "NoiseFold | None" = None
    """The group of noise lines that contains the line."""

    @property
    def folds(self) -> "Fold | NoiseFold | None":
        """The line's fold."""
        return self.noise or self.fold


@dataclass(eq=False)
class NoiseFold:
    """Consecutive lines of noise, replaced by one line while folded."""

    families: dict[str, None] = field(default_factory=dict)
    """The writers of the lines, in order."""
    counts: Counter[int | None] = field(default_factory=Counter)
    """Number of lines of each rank; None: of all ranks."""
    heads: dict[int | None, ShownLine] = field(default_factory=dict)
    """The first line of each rank; None: of all ranks."""
    open: bool = False

    def add(self, line: ShownLine, family: str) -> None:
        """Add the next line."""
        self.families[family] = None
        for rank in {None, line.rank}:
            self.counts[rank] += 1
            self.heads.setdefault(rank, line)

    @property
    def closed(self) -> bool:
        """Whether one line replaces all lines."""
        return self.counts[None] >= LEAST and not self.open

    def words(self, rank: int | None) -> str:
        """Return the text that replaces the lines of `rank`, or of all; "" for a few lines."""
        if self.counts[None] < LEAST:
            return ""
        first, *others = self.families
        names = f"{first} and {others[0]}" if len(others) == 1 else first
        names += f" and {len(others)} others" if len(others) > 1 else ""
        sign = "▾" if self.open else "▸"
        return f"{sign} {words.count(self.counts[rank], 'line')} of {names}"


class NoiseFolder:
    """Finds consecutive noise lines in a stream."""

    def __init__(self) -> None:
        self._fold: NoiseFold | None = None
        self._warned: set[str] = set()
        """Labels of writers whose last line was a Python warning: the next line may quote its
        code."""

    def feed(self, line: ShownLine) -> bool:
        """Add the next line; return whether it causes earlier lines to be folded."""
        family = self._family(line)
        if not family:
            self._fold = None
            return False
        if self._fold is None:
            self._fold = NoiseFold()
        self._fold.add(line, family)
        line.noise = self._fold
        return self._fold.counts[None] == LEAST

    def _family(self, line: ShownLine) -> str:
        text = line.text[line.label :]
        family = _written_by(text)
        quoted = line.source in self._warned and text.startswith("  ")
        if family == _WARNS:
            self._warned.add(line.source)
        elif self._warned:
            self._warned.discard(line.source)
        return _WARNS if quoted else family


def _written_by(text: str) -> str:
    """Return the writer of a noise line; "" if it is not noise."""
    if found := _BEGINS.match(text):
        return {"cpu_bind": "cpu-bind", "Python_warnings": _WARNS}.get(
            found.lastgroup or "", found.lastgroup or ""
        )
    for part, (family, pattern) in _INSIDE.items():
        if part in text and pattern.match(text):
            return family
    return ""


def figures_of(text: str) -> list[tuple[int, int, Style]]:
    """Return the separators and values of a line with a loss or speed, with their colours."""
    found = list(_FIGURES.finditer(text))
    if not any(one["value"] or one["rate"] for one in found):
        return []
    names = [(one, one.lastgroup or "") for one in found]
    return [(*one.span(name), DIM if name == "rule" else _NUMBER) for one, name in names]


def tone_of(line: ShownLine) -> Style:
    """Return the default colour of a line; its text has the same meaning."""
    if line.noise is not None:
        return DIM
    if _ERROR.search(line.text):
        return _RED
    return _YELLOW if _WARNING.search(line.text) else _PLAIN
