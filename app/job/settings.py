"""Where this person's profiles and history are on this machine, and which lumitui this is."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lumitui.remote.site.reading.writer import installed


@dataclass(frozen=True)
class Settings:
    """The folders lumitui uses on the laptop."""

    profiles: tuple[Path, ...]
    """Folders of site profiles, the most important first."""
    data: Path
    """History and locks."""

    @property
    def history(self) -> Path:
        """The history's file."""
        return self.data / "history.db"

    @property
    def file(self) -> Path:
        """The settings file, which only the user writes: `keys:` and what else is chosen."""
        return self.profiles[0].parent / "settings.yaml"

    @property
    def guide(self) -> Path:
        """The file with what the user has answered to the guide."""
        return self.data / "guide.json"

    @property
    def theme(self) -> Path:
        """The file with the name of the theme that was chosen last."""
        return self.data / "theme"


def settings(environ: Mapping[str, str] = os.environ) -> Settings:
    """Return the platform's folders; LUMITUI_CONFIG_DIR and LUMITUI_DATA_DIR override them."""
    # Imported late: `lumitui --version` needs neither of them, and profiles bring pydantic.
    import platformdirs

    from lumitui.remote.site.sites import BUILT_IN

    config = environ.get("LUMITUI_CONFIG_DIR") or platformdirs.user_config_dir("lumitui")
    data = environ.get("LUMITUI_DATA_DIR") or platformdirs.user_data_dir("lumitui")
    return Settings((Path(config) / "sites", BUILT_IN), Path(data))


def is_first_run(settings: Settings) -> bool:
    """Return whether there is no profile of the user's own, and they never used the guide."""
    own = settings.profiles[0]
    return not settings.guide.exists() and not any(own.glob("*.yaml"))


def write_whole(file: Path, text: str, mode: int = 0o600) -> None:
    """Write a small file, whole or not at all; by default for its owner alone.

    Raises:
        OSError: it cannot be written.
    """
    import tempfile

    number, part = tempfile.mkstemp(prefix=f".{file.stem}-", dir=file.parent)  # mode 0600
    try:
        with os.fdopen(number, "wb") as opened:
            opened.write(text.encode())
            opened.flush()
            os.fchmod(number, mode)
            os.fsync(number)
        os.replace(part, file)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


def version() -> str:
    """Return the program's version; `unknown` when it runs without being installed."""
    return installed()
