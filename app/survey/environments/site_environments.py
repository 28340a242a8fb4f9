"""The images and environments of a site, for the verbs and the screens."""

import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from lumitui.app.history.history import History
from lumitui.app.launch.draft.job_form import FieldChoice
from lumitui.app.launch.venv_script import name_in
from lumitui.app.survey.environments.image_contents import choice_of
from lumitui.app.survey.environments.known_images import (
    KnownImages,
    SiteImages,
    answered,
    with_known,
)
from lumitui.remote.connect import Connection, Connections
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.profile import Site
from lumitui.remote.site.run_folder import VENVS
from lumitui.remote.site.sites import Sites
from lumitui.remote.transfer.environments.image_listing import find_images
from lumitui.remote.transfer.environments.venvs import RemovedVenvs, Venv, list_venvs, remove_venvs
from lumitui.remote.transfer.run_users import RunUser, venv_users

FindUnfinished = Callable[[str, Connection, Sequence[RunUser]], Collection[str]]
"""Returns the ids of those runs at a site that have not ended."""


class Environments:
    """The images and environments of sites. Threads may share it."""

    def __init__(
        self,
        sites: Sites,
        connections: Connections,
        history: History,
        data: Path,
        find_unfinished: FindUnfinished,
    ) -> None:
        """Keep the listings of images in a folder of `data`."""
        self._find_unfinished = find_unfinished
        self._sites, self._connections, self._history = sites, connections, history
        self._known = KnownImages(data / "images")

    def choices(self, site_name: str) -> list[FieldChoice]:
        """Return the last listed images for the form, without querying the site."""
        listing = self._known.get(site_name)
        return [choice_of(image) for image in listing.images] if listing else []

    def images(self, site_name: str, *, refresh: bool = False) -> SiteImages:
        """Return the images of a site: the last listing, or with `refresh` a new one.

        Raises:
            InputError: there is no such site, or it has no containers.
        """
        site = self._sites.load(site_name)
        if not any(one.image or one.listing for one in site.containers.values()):
            raise InputError(
                f"The profile of {site_name} has no container images.",
                f"Jobs there use {_runtime(site)}, or your own image (`container: {{image: …}}`).",
            )
        earlier = self._known.get(site_name)
        if earlier and not refresh:
            return earlier
        transport = self._connections.get(site).transport
        listed = find_images(transport, site, answered(earlier))
        listing = SiteImages(time.time(), with_known(listed, earlier))
        self._known.put(site_name, listing)
        return listing

    def venvs(self, site_name: str, account: str = "") -> dict[str, list[Venv]]:
        """Return the environments of a site by their folders.

        Raises:
            InputError: there is no such site, or it needs an account and none is known.
        """
        site = self._sites.load(site_name)
        transport = self._connections.get(site).transport
        return {folder: list_venvs(transport, folder) for folder in self._folders(site, account)}

    def remove(
        self,
        site_name: str,
        names: Sequence[str] = (),
        *,
        account: str = "",
        unused_days: int = 0,
        dry: bool = False,
    ) -> dict[str, RemovedVenvs]:
        """Remove environments that no unfinished run uses; return those removed, by folder.

        Unfinished runs of other computers count too, if their folders are readable. Without
        `names`, this removes environments unused for `unused_days`, and remains of killed builds.

        Raises:
            InputError: there is no such site, it needs an account, an unfinished run uses an
                environment, or the site has none of `names`.
        """
        site = self._sites.load(site_name)
        unfinished = (self._history.get(run.id) for run in self._history.unfinished(site_name))
        own = {name: run.id for run in unfinished if (name := name_in(run.script))}
        used = self._used_there(site, account) | own
        for name in names:
            if run := used.get(name.partition("-")[0]):
                far = run not in own.values()
                raise InputError(
                    f"The unfinished run {run}{' from another computer' * far} uses the "
                    f"environment {name}.",
                    f"Wait for its end, or run `lumitui cancel {run}`{' on that computer' * far}.",
                )
        transport = self._connections.get(site).transport
        removed = {
            folder: remove_venvs(
                transport, folder, used, only=names, unused_days=unused_days, dry=dry
            )
            for folder in self._folders(site, account)
        }
        if names and not any(one.names for one in removed.values()):
            raise InputError(
                f"{site_name} has no environment {', '.join(names)}.",
                f"`lumitui site venvs {site_name}` lists them.",
            )
        return removed

    def _used_there(self, site: Site, account: str) -> dict[str, str]:
        """Return the environments of unfinished runs in the site's folders, each with a run."""
        connection = self._connections.get(site)
        users_of: dict[str, list[RunUser]] = {}
        for root in self._roots(site, account):
            for name, users in venv_users(connection.transport, root).items():
                users_of.setdefault(name, []).extend(users)
        every = sorted(
            {one for each in users_of.values() for one in each}, key=lambda one: one.folder
        )
        ids = self._find_unfinished(site.name, connection, every) if every else ()
        return {name: one.run for name, each in users_of.items() for one in each if one.run in ids}

    def _folders(self, site: Site, account: str) -> list[str]:
        connection = self._connections.get(site)
        if own := site.venv.folder:
            accounts = {account} if account else self._accounts(site)
            return sorted(
                own.format(account=name, user=connection.user(), home=connection.home).rstrip("/")
                for name in accounts
            )
        roots = self._roots(site, account)
        if not roots:
            raise InputError(f"You have no run with an account at {site.name}.", "Add --account.")
        return [f"{root}/{VENVS}" for root in roots]

    def _roots(self, site: Site, account: str) -> list[str]:
        """Return the known work roots of the account; "" for all accounts."""
        connection = self._connections.get(site)
        earlier = set[str]()
        if not account:
            roots = self._history.snapshots.in_use(site.name)
            earlier = {root.rpartition("/")[0] for root in roots}
        accounts = {account} if account else self._accounts(site)
        return sorted(earlier | {connection.work_root(site, name) for name in accounts})

    def _accounts(self, site: Site) -> set[str]:
        if not site.account.required:
            return {"none"}
        page = self._history.page(limit=200, site=site.name)
        return {run.brief.account for run in page} - {"none", ""}


def _runtime(site: Site) -> str:
    lines = [line for line in site.modules if "purge" not in line]
    return f"`{'; '.join(lines)}`" if lines else "the installed software"
