"""A person's own folders, new for each test."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from lumitui.app.job.settings import Settings, settings
from tests.support.places import SITES
from tests.support.servers.cluster import Cluster


@dataclass(frozen=True)
class Home:
    """A person's own configuration and data folders, new for each test."""

    config: Path
    data: Path

    @property
    def environ(self) -> dict[str, str]:
        """The environment of a lumitui that lives here."""
        return {
            **os.environ,
            "LUMITUI_CONFIG_DIR": str(self.config),
            "LUMITUI_DATA_DIR": str(self.data),
            "LUMITUI_SYSTEM_DIR": str(self.config.parent / "system"),
        }

    @property
    def settings(self) -> Settings:
        """The same as settings."""
        return settings(self.environ)

    def add_cluster(
        self, cluster: Cluster, name: str = "minilumi", profile: str = "minilumi"
    ) -> None:
        """Make the mini cluster (perhaps behind a proxy) the site `name`.

        `profile` is the one of its shape in tests/cluster/sites.
        """
        text = (SITES / f"{profile}.yaml").read_text()
        text = re.sub(r"/tmp/mini\w+/ssh/config", str(cluster.ssh_config), text)
        text = text.replace("22.05.8", cluster.slurm_version)
        (self.config / "sites" / f"{name}.yaml").write_text(
            text.replace(f"name: {profile}", f"name: {name}", 1)
        )
