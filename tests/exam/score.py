"""How often the diagnosis names the right cause: `make exam`.

The half that is held out is scored with `--held-out` only.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from lumitui.app.knowledge.causes.meanings import EXIT_CODES
from lumitui.app.knowledge.failure.diagnose import diagnose
from lumitui.app.knowledge.failure.diagnosis import RunEnd
from lumitui.remote.site.states import State
from tests.exam.corpus import Excerpt, asked_once, benign, benign_logs, excerpts, got_over

_CODES = {meaning.id for meaning in EXIT_CODES.values()} - {"usage", "no-command"}
UNNAMED = frozenset({"unknown", "exception", *_CODES})
"""Answers that name no cause: what an exit code says is true of any cause."""


@dataclass(frozen=True)
class Score:
    """The answers for one half."""

    answers: tuple[tuple[Excerpt, str], ...]

    @property
    def macro_f1(self) -> float:
        """The mean over the causes of F1."""
        causes = {item.cause for item, _ in self.answers}
        return sum(self._f1(cause) for cause in causes) / len(causes)

    @property
    def wrong(self) -> tuple[tuple[Excerpt, str], ...]:
        """Those where another cause was named."""
        return tuple((i, a) for i, a in self.answers if a != i.cause and a not in UNNAMED)

    def _f1(self, cause: str) -> float:
        right = sum(item.cause == cause == answer for item, answer in self.answers)
        either = sum((item.cause == cause) + (answer == cause) for item, answer in self.answers)
        return 2 * right / either


def score(items: Sequence[Excerpt], *, slurm: bool) -> Score:
    """Return the answers for `items`."""
    return Score(tuple((item, item.found(slurm=slurm).id) for item in items))


def invented() -> tuple[tuple[str, str], ...]:
    """Return the benign lines, and whole logs, of which a failed job gets a cause."""
    texts = (*(f"{line}\n" for line in benign()), *benign_logs(), *got_over())
    answers = ((text, diagnose(RunEnd(State.FAILED, log=text))[0].id) for text in texts)
    return tuple((text[:80], answer) for text, answer in answers if answer not in UNNAMED)


def changed(items: Sequence[Excerpt]) -> tuple[str, ...]:
    """Return the excerpts whose answer changes when all benign lines stand before them."""
    before = "\n".join(benign()) + "\n"
    return tuple(
        item.id
        for item in items
        if item.found(slurm=False).id != item.found(slurm=False, before=before).id
    )


def main(arguments: Sequence[str]) -> None:
    """Print the scores."""
    held_out = "--held-out" in arguments
    items = [item for item in excerpts() if item.held_out == held_out]
    _tell(f"{'held-out' if held_out else 'tuning'} half", items, missed=not held_out)
    print(f"  changed by benign text before: {changed(items)}")
    _tell("logs of which no rule has learnt", asked_once(), missed=False)
    logs = len(benign_logs()) + len(got_over())
    print(f"invented on {len(benign())} benign lines and {logs} logs: {invented()}")


def _tell(name: str, items: Sequence[Excerpt], *, missed: bool) -> None:
    """Print the score of `items`, and those that were missed where rules may learn from them."""
    print(f"{name}: {len(items)} logs, {len({item.cause for item in items})} causes")
    for slurm, words in ((True, "with Slurm's words"), (False, "from the log alone")):
        result = score(items, slurm=slurm)
        print(f"  {words}: macro-F1 {result.macro_f1:.3f}, wrong named {len(result.wrong)}")
        for item, answer in result.answers if missed else ():
            if answer != item.cause:
                print(f"    {item.id}: {item.cause}, answered {answer}")


if __name__ == "__main__":
    main(sys.argv[1:])
