"""What the login node shows: tools, containers, modules, and room to write. Pure."""

from collections.abc import Iterator

from lumitui.remote.site.answer_fields import count, last_words
from lumitui.remote.site.profile import Site
from lumitui.remote.survey.doctor.check_result import Check, Status


def connection(text: str, said: str = "") -> Check:
    """Check that the login node answers; shows the user's name and the host.

    `said` is what it answered instead.
    """
    user, _, host = text.strip().partition("\n")
    if not host:
        found = f"id and uname gave no answer{f': {said}' if said else ''}"
        return Check("connection", "failed", found, "", "Log in manually.")
    return Check("connection", "ok", f"{user} at {host}")


def configuration(note: str) -> Check:
    """Return a warning about how the connection is configured on this machine."""
    return Check("configuration", "warning", note, "", "Change the option if you need to.")


def tools(text: str, site: Site) -> Iterator[Check]:
    """Check that no command is missing (the answer lists those that are)."""
    missing = text.split()
    if missing:
        do = "Ask the site's support, or add them to the PATH of non-interactive shells."
        yield Check("tools", "failed", f"missing: {', '.join(missing)}", "", do)
    else:
        yield Check("tools", "ok", "all found")


def python(text: str, site: Site) -> Iterator[Check]:
    """Check that the site's python can import torch (a site of plain processes)."""
    path, _, has_torch = text.strip().rpartition(" ")
    if has_torch == "True":
        yield Check("python", "ok", f"{path} has torch")
        return
    found = f"{path} has no torch" if has_torch == "False" else text.strip()[-200:] or "no answer"
    do = "Set LUMITUI_PYTHON to a python that has torch: bundled trainers need it."
    yield Check("python", "warning", found, site.python, do)


def images(text: str, site: Site) -> Iterator[Check]:
    """Check that the containers' images can be read (the answer lists those that cannot)."""
    missing = set(text.splitlines())
    for name, container in site.containers.items():
        if container.image in missing:
            status: Status = "failed" if name == site.default_container else "warning"
            do = f"Name another image: `containers.{name}.image`, or `container: {{image: …}}`."
            yield Check(f"image {name}", status, "cannot be read", container.image, do)
        else:
            yield Check(f"image {name}", "ok", container.image)


def module_command(text: str, site: Site) -> Iterator[Check]:
    """Check that a login shell has `module` where the profile uses it."""
    if not (site.modules or any(container.modules for container in site.containers.values())):
        return
    if text.strip() == "yes":
        yield Check("module", "ok", "a login shell has it")
    else:
        do = "Ask the site how modules are set up: the profile's `modules:` lines would fail."
        yield Check("module", "failed", "not in a login shell", "module", do)


def work_root(text: str, root: str) -> Check:
    """Check that files can be written at the work root, and show the free space."""
    place, word, last, *_ = [*text.splitlines(), "", "", ""]
    usage = last.split()
    kib = count(usage[3]) if len(usage) > 3 else None
    free = f", {kib / 2**20:.1f} GiB free" if kib is not None else ""
    if word not in ("writable", "refused"):
        do = "Log in and check the folder manually."
        return Check("work root", "failed", f"no answer: {last_words(text)}", root, do)
    if word == "refused":
        do = "Check the account and your quota, or set `work_root` in your own profile."
        return Check("work root", "failed", f"{place} cannot be written{free}", root, do)
    if kib is not None and kib < 2**20:
        do = "Make room: `lumitui site prune`."
        return Check("work root", "warning", f"{place}{free}", root, do)
    return Check("work root", "ok", f"{place} is writable{free}")
