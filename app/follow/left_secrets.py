"""Removal of the secrets that ended runs left on their sites.

A job that succeeds removes its secrets. A failed or killed job does not, because its site may
requeue it. Once the history shows that a run has ended, nothing needs them: a resubmission sends
its own.
"""

import contextlib
from dataclasses import dataclass
from pathlib import Path

from lumitui.app.history.history import History
from lumitui.app.history.run import Run
from lumitui.remote.site.answer_fields import last_words, lines
from lumitui.remote.site.errors import HistoryError, InputError, LinkError
from lumitui.remote.site.run_folder import POLL_SECONDS, SECRETS
from lumitui.remote.site.shell_text import quote
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Transport

_MOST = 100  # maximum number of runs per request


@dataclass(frozen=True)
class Swept:
    """The result of a sweep: its requests and failures."""

    requests: int = 0
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class LeftSecrets:
    """The runs that may have secrets on their sites: one empty local file for each."""

    folder: Path

    def expect(self, run: Run) -> None:
        """Note that `run` is about to be sent, if it has secrets; HistoryError if that fails."""
        if not run.spec.secret_names:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            (self.folder / run.id).touch(mode=0o600)
        except OSError as error:
            raise HistoryError(
                f"lumitui cannot record that {run.id} has secrets: {error.strerror}.",
                f"Check the permissions of {self.folder} and the space on the disk.",
            ) from error

    @purpose("tidy")
    def sweep(self, history: History, site: str, transport: Transport) -> Swept:
        """Remove the secrets of the runs at `site` that have ended.

        It takes one request if there are any, otherwise none. If the link is lost or the answer
        does not confirm the removal, the next sweep tries again.
        """
        ended = self._ended(history, site)[:_MOST]
        if not ended:
            return Swept()
        files = " ".join(quote(f"{run.folder}/{SECRETS}") for run in ended)
        remove = 'rm -f -- "$f" 2>/dev/null || printf "%s\\n" "$f"'
        script = f"for f in {files}; do {remove}; done; echo done"
        try:
            result = transport.run(script, timeout=POLL_SECONDS)
            *stayed, last = list(lines(result.out)) or [""]
        except LinkError as error:
            words = f"The secrets of {ended[0].id} are still at {site}: {error.message}"
            return Swept(1, (words,))
        if result.code or last != "done":
            answer = last_words(result.err, result.out, default=f"exit status {result.code}")
            words = f"The secrets of {ended[0].id} may still be at {site}; it answers: {answer}."
            return Swept(1, (words,))
        for run in ended:
            with contextlib.suppress(OSError):  # then the next sweep removes it again
                (self.folder / run.id).unlink(missing_ok=True)
        warnings = (
            f"{run.id}: {run.folder}/{SECRETS} cannot be removed; remove it yourself."
            for run in ended
            if f"{run.folder}/{SECRETS}" in stayed
        )
        return Swept(1, tuple(warnings))

    def _ended(self, history: History, site: str) -> list[Run]:
        runs = []
        for path in sorted(self.folder.glob("*")):
            try:
                run = history.get(path.name)
            except InputError:
                continue  # about to begin, or from a lost history
            if run.id == path.name and run.site == site and run.state.is_final:
                runs.append(run)
        return runs
