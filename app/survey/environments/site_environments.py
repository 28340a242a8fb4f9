"""The images and environments of a site: what the verbs and the screens call."""

import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from lumitui.app.history.history import History
from lumitui.app.launch.draft.job_form import FieldChoice
from lumitui.app.launch.script.venv_script import name_in
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
from lumitui.remote.transfer.environments.venv_users import venv_users
from lumitui.remote.transfer.environments.venvs import RemovedVenvs, Venv, list_venvs, remove_venvs
from lumitui.remote.transfer.run_users import RunUser

FindUnfinished = Callable[[str, Connection, Sequence[RunUser]], Collection[str]]
"""Returns the ids of those of some runs at a site that have not ended."""


class Environments:
    """What programs find on a site besides their own code. Threads may share it."""

    def __init__(
        self,
        sites: Sites,
        connections: Connections,
        history: History,
        data: Path,
        find_unfinished: FindUnfinished,
    ) -> None:
        """Keep what is known of images in a folder of `data`."""
        self._find_unfinished = find_unfinished
        self._sites, self._connections, self._history = sites, connections, history
        self._known = KnownImages(data / "images")

    def choices(self, site_name: str) -> list[FieldChoice]:
        """Return the images as they were found last, for the form; the site is not asked."""
        listing = self._known.get(site_name)
        return [choice_of(image) for image in listing.images] if listing else []

    def images(self, site_name: str, *, refresh: bool = False) -> SiteImages:
        """Return the images of a site: as they were found last, or asked for now.

        Raises:
            InputError: no such site, or it has no containers.
            LinkError: the site cannot be reached.
        """
        site = self._sites.load(site_name)
        if not any(one.image or one.listing for one in site.containers.values()):
            raise InputError(
                f"{site_name}'s profile names no container images.",
                f"Jobs run there with {_runtime(site)}, or in an image of your own "
                "(`container: {image: …}`).",
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
            InputError: no such site, or an account is needed and none is known.
            LinkError: it cannot be reached.
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
        """Remove environments that no unfinished run uses; return what went, by folder.

        Runs that other computers sent count, as far as their folders can be read.

        Without `names`, those go that nobody used for some days, and what killed builds have left.

        Raises:
            InputError: no such site, an account is needed, or an unfinished run uses one.
            LinkError: it cannot be reached.
        """
        site = self._sites.load(site_name)
        own = self._in_use(site_name)
        for name in names:
            if run := own.get(name.partition("-")[0]):
                raise InputError(
                    f"{run} uses the environment {name} and has not ended.",
                    f"Wait for its end, or `lumitui cancel {run}`.",
                )
        used = own | self._used_there(site, account)
        for name in names:
            if run := used.get(name.partition("-")[0]):
                raise InputError(
                    f"{run}, which another computer sent, uses the environment {name}.",
                    "Wait until it has ended, or cancel it there.",
                )
        transport = self._connections.get(site).transport
        return {
            folder: remove_venvs(
                transport, folder, used, only=names, unused_days=unused_days, dry=dry
            )
            for folder in self._folders(site, account)
        }

    def _used_there(self, site: Site, account: str) -> dict[str, str]:
        """Return what unfinished runs use whose folders the site has, each with such a run."""
        connection = self._connections.get(site)
        users_of: dict[str, list[RunUser]] = {}
        for root in self._roots(site, account):
            for name, users in venv_users(connection.transport, root).items():
                users_of.setdefault(name, []).extend(users)
        every = sorted(
            {one for each in users_of.values() for one in each}, key=lambda one: one.folder
        )
        at_work = self._find_unfinished(site.name, connection, every) if every else ()
        return {
            name: one.run for name, each in users_of.items() for one in each if one.run in at_work
        }

    def _in_use(self, site_name: str) -> dict[str, str]:
        """Return the environments of unfinished runs, each with such a run."""
        runs = (self._history.get(run.id) for run in self._history.unfinished(site_name))
        return {name: run.id for run in runs if (name := name_in(run.script))}

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
            raise InputError(f"No run of yours names an account at {site.name}.", "Give --account.")
        return [f"{root}/{VENVS}" for root in roots]

    def _roots(self, site: Site, account: str) -> list[str]:
        """Return the work roots that are known of the account; "": of all accounts."""
        connection = self._connections.get(site)
        earlier = set[str]()
        if not account:
            roots = self._history.snapshots.in_use(site.name)
            earlier = {root.rpartition("/")[0] for root in roots}
        accounts = {account} if account else self._accounts(site)
        return sorted(earlier | {connection.work_root(site, name) for name in accounts})

    def _accounts(self, site: Site) -> set[str]:
        """Return the accounts that runs at the site were paid by."""
        if not site.account.required:
            return {"none"}
        page = self._history.page(limit=200, site=site.name)
        return {run.brief.account for run in page} - {"none", ""}


def _runtime(site: Site) -> str:
    lines = [line for line in site.modules if "purge" not in line]
    return f"`{'; '.join(lines)}`" if lines else "what is installed there"
