"""The user's folders on this machine, the administrators' defaults, and the version of lumitui."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lumitui.remote.site.reading.writer import installed

SETTINGS_BLOCKS = ("keys", "notify", "agents")
"""The possible contents of a settings file."""
SYSTEM = "/etc/lumitui"
"""The folder of administrators' profiles and settings for all users of a machine."""


@dataclass(frozen=True)
class Settings:
    """The folders lumitui uses on the laptop."""

    profiles: tuple[Path, ...]
    """Folders of site profiles, the most important first: the user's, the system's, lumitui's."""
    data: Path
    """History and locks."""

    @property
    def history(self) -> Path:
        """The history's file."""
        return self.data / "history.db"

    @property
    def file(self) -> Path:
        """The settings file, which only the user writes."""
        return self.files[0]

    @property
    def files(self) -> tuple[Path, ...]:
        """The settings file of the user, then that of the system."""
        return tuple(folder.parent / "settings.yaml" for folder in self.profiles[:-1])

    @property
    def guide(self) -> Path:
        """The file with the user's answers in the guide."""
        return self.data / "guide.json"

    @property
    def theme(self) -> Path:
        """The file that stores the name of the chosen theme."""
        return self.data / "theme"


def settings(environ: Mapping[str, str] = os.environ) -> Settings:
    """Return the platform's folders, which the variables `LUMITUI_…_DIR` override."""
    # Late: `lumitui --version` needs neither, and profiles import pydantic.
    import platformdirs

    from lumitui.remote.site.sites import BUILT_IN

    config = environ.get("LUMITUI_CONFIG_DIR") or platformdirs.user_config_dir("lumitui")
    data = environ.get("LUMITUI_DATA_DIR") or platformdirs.user_data_dir("lumitui")
    system = environ.get("LUMITUI_SYSTEM_DIR") or SYSTEM
    return Settings((Path(config) / "sites", Path(system) / "sites", BUILT_IN), Path(data))


def is_first_run(settings: Settings) -> bool:
    """Return whether the user has no profile of their own and never used the guide."""
    own = settings.profiles[0]
    return not settings.guide.exists() and not any(own.glob("*.yaml"))


def write_whole(file: Path, text: str, mode: int = 0o600) -> None:
    """Write a small file atomically; by default only its owner can read it."""
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


def install_hint(package: str) -> str:
    """Return how to install an optional `package` beside lumitui, from a wheel or a clone.

    It names the package itself with its limits: the index of packages has no `lumitui`.
    """
    from importlib import metadata

    try:
        needed = metadata.requires("lumitui") or ()
    except metadata.PackageNotFoundError:
        needed = ()  # started from the source code alone
    texts = (text.partition(";")[0].strip() for text in needed)
    named = (text for text in texts if re.match(rf"{re.escape(package)}(?![\w-])", text))
    wanted = next(named, package)
    return (
        f"Install it beside lumitui: `pip install '{wanted}'`, or with pipx "
        f"`pipx inject lumitui '{wanted}'`."
    )


def version() -> str:
    """Return the program's version; `unknown` if it is not installed."""
    return installed()
