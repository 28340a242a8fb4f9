"""Decides whether to trust a host's key: by known_hosts, the site's published keys, or the user.

The decisions are OpenSSH's (`check_host_key` in sshconnect.c), with these differences: lumitui
trusts a key that the site publishes without asking, treats `StrictHostKeyChecking no` as `ask`, and
ignores host certificates (`@cert-authority`): the key inside one counts.
"""

import shlex
from collections.abc import Iterator, Mapping

from lumitui.remote.site.errors import LinkError
from lumitui.remote.ssh.config import HostConfig
from lumitui.remote.ssh.prompts import Ask, LoginQuestion
from lumitui.remote.ssh.trust.known_hosts import HostKey, KnownKey, keys_in_files, remember


def wanted_types(host: HostConfig, published: Mapping[str, str]) -> set[str]:
    """Return the key types to request first: those of valid known keys, else the published ones."""
    trust = host.trust
    known = keys_in_files(trust, trust.name)
    revoked = {item.key.blob for item in known if item.marker == "@revoked"}
    good = [item for item in known if not item.marker and item.key.blob not in revoked]
    types = {item.key.type for item in good} or set(published)
    return types | ({"rsa-sha2-512", "rsa-sha2-256"} if "ssh-rsa" in types else set())


def contradictions(host: HostConfig, published: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each published fingerprint that known_hosts contradicts.

    A known key is trusted whatever the site publishes, but a new user would be refused.
    """
    for item in keys_in_files(host.trust, host.trust.name):
        expected = published.get(item.key.type, "").rstrip("=")
        if not item.marker and expected and expected != item.key.fingerprint:
            yield (
                f"the profile publishes {expected}, but {item.place} has "
                f"{item.key.fingerprint} for {host.trust.name}"
            )


def check(host: HostConfig, shown: HostKey, published: Mapping[str, str], ask: Ask) -> None:
    """Check that `shown`, the host's key, may be trusted, and record a newly trusted one.

    `published` has the site's fingerprints by key type; `ask` asks the user.

    Raises:
        LinkError: the key is revoked, differs from the known or the published one, or the user did
            not accept it.
    """
    trust = host.trust
    known = keys_in_files(trust, trust.name)
    _refuse_marked(known, trust.name, shown)
    expected = published.get(shown.type, "").rstrip("=")
    plain = [item for item in known if not item.marker]
    if any(item.key.blob == shown.blob for item in plain):
        return
    if plain:
        raise _changed(trust.name, shown, plain, renewed=expected == shown.fingerprint)
    bare = keys_in_files(trust, trust.bare_name) if trust.bare_name else []
    _refuse_marked(bare, trust.bare_name, shown)
    if any(item.key.blob == shown.blob and not item.marker for item in bare):
        return
    if expected and expected != shown.fingerprint:
        raise LinkError(
            f"{trust.name} has the host key {shown.fingerprint}, but the site publishes "
            f"{expected}.",
            "Someone may be intercepting the connection, or the profile is outdated: compare "
            "both keys with those on the site's web pages.",
        )
    remarks = _remarks(known, bare)
    remarks += ["The profile lists this key as unverified."] if expected and not trust.sure else []
    _accept(host, shown, published=bool(expected) and trust.sure, ask=ask, remarks=remarks)
    remember(trust, shown)


def _accept(
    host: HostConfig, shown: HostKey, *, published: bool, ask: Ask, remarks: list[str]
) -> None:
    """Check that the configuration or the user accepts the new key `shown`."""
    trust = host.trust
    unknown = f"The host key of {trust.name}, {shown.fingerprint}, is unknown"
    unknown = " ".join([*remarks, unknown])
    if trust.strict == "yes":
        advice = "This is" if published else "First compare it with"
        file = trust.files[0] if trust.files else "a file of known host keys"
        raise LinkError(
            f"{unknown}, and StrictHostKeyChecking is yes.",
            f"{advice} the key that the site publishes. To add it to {file}, log in "
            "once with ssh and -o StrictHostKeyChecking=ask.",
        )
    if published or (trust.strict == "accept-new" and trust.files):
        return
    if not trust.files:
        raise LinkError(
            f"{unknown}, and UserKnownHostsFile is empty, so lumitui cannot save it.",
            "Set a file in the ssh configuration.",
        )
    if host.batch:
        raise LinkError(
            f"{unknown}, and BatchMode forbids questions.",
            f"Compare it with the key that the site publishes, and add it to {trust.files[0]}.",
        )
    _ask(host, shown, ask, remarks)


def _refuse_marked(known: list[KnownKey], name: str, shown: HostKey) -> None:
    for item in known:
        if item.marker == "@revoked" and item.key.blob == shown.blob:
            raise LinkError(
                f"The host key of {name}, {shown.fingerprint}, is revoked in {item.place}.",
                "Do not log in; ask the site's support.",
            )


def _changed(name: str, shown: HostKey, plain: list[KnownKey], *, renewed: bool) -> LinkError:
    """Return the error for a host whose key is not among its known ones.

    As in OpenSSH, a key of another type also counts as changed: an attacker can choose the type.
    """
    old = next((item for item in plain if item.key.type == shown.type), plain[0])
    kind = "" if old.key.type == shown.type else f" ({old.key.type})"
    other = "" if not kind else f" ({shown.type})"
    file = old.place.rpartition(":")[0]
    remedy = f"remove the old one with: ssh-keygen -R {shlex.quote(name)} -f {shlex.quote(file)}"
    return LinkError(
        f"The host key of {name} changed: known_hosts has {old.key.fingerprint}{kind} "
        f"({old.place}), but the host sent {shown.fingerprint}{other}.",
        (
            "The site now publishes the new key; "
            if renewed
            else "Someone may be intercepting the connection. Only if the site has announced "
            "the new key, "
        )
        + remedy,
    )


def _remarks(known: list[KnownKey], bare: list[KnownKey]) -> list[str]:
    """Return remarks for the user about a key that is not in `known`."""
    remarks = [
        f"An authority vouches for this host ({item.place}, @cert-authority), but lumitui "
        "cannot check host certificates; it needs the host's own key."
        for item in known
        if item.marker == "@cert-authority"
    ]
    others = [item for item in bare if not item.marker]
    remarks += [
        f"The name without the port has a different known key: {item.key.type} ({item.place})."
        for item in others[:1]
    ]
    return remarks


def _ask(host: HostConfig, shown: HostKey, ask: Ask, remarks: list[str]) -> None:
    name = host.trust.name
    lines = [
        f"{name} is unknown. Its {shown.type} host key is",
        shown.fingerprint,
        *remarks,
        "Is this the key that the site publishes? (yes/no)",
    ]
    answer = ask(LoginQuestion("\n".join(lines), secret=False, kind="host-key"))
    if (answer or "").strip().lower() not in ("yes", "y"):
        who = "Nobody accepted" if answer is None else "You did not accept"
        raise LinkError(
            " ".join([f"{who} the host key of {name}, {shown.fingerprint}.", *remarks]),
            "Compare it with the key that the site publishes, and connect again in a terminal.",
        )
