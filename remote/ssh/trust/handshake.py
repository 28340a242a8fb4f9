"""Begins a connection: agrees on algorithms, and checks the host's key."""

import re
from collections.abc import Mapping

import paramiko
from paramiko.ssh_exception import IncompatiblePeer

from lumitui.remote.site.errors import LinkError
from lumitui.remote.ssh import tcp
from lumitui.remote.ssh.config import HostConfig
from lumitui.remote.ssh.link import BROKEN, SshTransport
from lumitui.remote.ssh.options.algorithms import GCM, MORE_KEX
from lumitui.remote.ssh.prompts import Ask
from lumitui.remote.ssh.trust.host_trust import check, wanted_types
from lumitui.remote.ssh.trust.known_hosts import HostKey

ANSWER = 300.0
"""Seconds for a user's answers; sshd's LoginGraceTime is 120."""

_NAME = re.compile(r"[!-+\--~]{1,64}")
_MOST = 300  # maximum number of characters of a list in a message
_MORE = (
    "If the ssh configuration sets Ciphers, MACs, KexAlgorithms or HostKeyAlgorithms, allow more "
    "for this host; otherwise update both sides."
)


class TurnedAway(LinkError):
    """The server has too many concurrent logins (MaxStartups); it will accept one soon."""


def shake_hands(
    transport: SshTransport, host: HostConfig, published: Mapping[str, str], ask: Ask
) -> HostKey:
    """Negotiate, then check and return the host's key, before anything secret is sent.

    Raises:
        LinkError: there is no common algorithm, no answer, or no trust in the key.
    """
    _configure(transport, host, published)
    try:
        transport.start_client()
        shown = transport.get_remote_server_key()
    except BROKEN as error:
        raise _no_handshake(error, host, transport) from error
    _check_macs(transport, host)
    key = HostKey(shown.get_name(), shown.asbytes())
    if key.type == "ssh-rsa" and shown.get_bits() < host.algorithms.rsa_bits:
        raise LinkError(
            f"The host key of {host.trust.name} has {shown.get_bits()} bits, fewer than "
            f"RequiredRSASize ({host.algorithms.rsa_bits}).",
            "Ask the site for a longer key, or lower RequiredRSASize for this host.",
        )
    check(host, key, published, ask)
    return key


def _configure(
    transport: paramiko.Transport, host: HostConfig, published: Mapping[str, str]
) -> None:
    allowed, options = host.algorithms, transport.get_security_options()
    all_macs, with_gcm = options.digests, any(name in GCM for name in allowed.ciphers)
    # paramiko needs a common MAC even for a cipher that uses none: see _check_macs.
    more = [name for name in all_macs if name not in allowed.macs] if with_gcm else []
    options.ciphers, options.digests = allowed.ciphers, (*allowed.macs, *more)
    methods: dict[str, object] = vars(paramiko.Transport)["_kex_info"]
    setattr(transport, "_kex_info", {**methods, **MORE_KEX})  # noqa: B010  # not in its stubs
    options.kex = allowed.kex
    first = wanted_types(host, published) if allowed.known_first else set()
    options.key_types = sorted(allowed.host_keys, key=lambda kind: kind not in first)
    if host.rekey_bytes:
        packets = transport.packetizer
        packets.REKEY_BYTES = min(host.rekey_bytes, packets.REKEY_BYTES)
    transport.banner_timeout = transport.handshake_timeout = host.connect_timeout
    transport.auth_timeout = ANSWER


def _check_macs(transport: paramiko.Transport, host: HostConfig) -> None:
    """Check that each direction has an allowed MAC, or a cipher that needs none."""
    for side in ("local", "remote"):
        cipher, mac = (getattr(transport, f"{side}_{what}") for what in ("cipher", "mac"))
        if cipher not in GCM and mac not in host.algorithms.macs:
            raise LinkError(
                f"{host.hostname} (port {host.port}) and lumitui have no common algorithm: MACs "
                f"in the ssh configuration excludes {mac}.",
                _MORE,
            )


def _lacking(transport: SshTransport) -> str:
    """Return the part of the server's offer without a common algorithm; "" if that is unclear.

    No checksum protects its lists yet. Servers send the same lists for both directions, with names
    in printable ASCII (RFC 4251, 6) and the compression `none` (RFC 4253, 6.2).
    """
    theirs, own = transport.offered, transport.get_security_options()
    words = [word for name in theirs if name.endswith("_algo_list") for word in theirs[name]]
    ways = ("encrypt_algo_list", "mac_algo_list", "compress_algo_list")
    if (
        not all(map(_NAME.fullmatch, words))
        or "none" not in theirs.get("client_compress_algo_list", ())
        or any(list(theirs[f"client_{way}"]) != list(theirs[f"server_{way}"]) for way in ways)
    ):
        return ""
    for kind, name, ours in (
        ("key exchange", "kex_algo_list", own.kex),
        ("host key", "server_key_algo_list", own.key_types),
        ("cipher", "client_encrypt_algo_list", own.ciphers),
        ("MAC", "client_mac_algo_list", own.digests),
    ):
        if set(theirs[name]).isdisjoint(ours):
            if any(_one_bit_apart(word, mine) for word in theirs[name] for mine in ours):
                return ""
            return f"as {kind} it offers only {', '.join(theirs[name])[:_MOST]}"
    return ""


def _one_bit_apart(one: str, other: str) -> bool:
    apart = [ord(a) ^ ord(b) for a, b in zip(one, other, strict=False) if a != b]
    return len(one) == len(other) and len(apart) == 1 and apart[0].bit_count() == 1


def _no_handshake(error: Exception, host: HostConfig, transport: SshTransport) -> LinkError:
    """Return the error for a connection that ended before the server sent its host key."""
    place = f"{host.hostname} (port {host.port})"
    sock = transport.sock if isinstance(transport.sock, tcp.Metered) else None
    if isinstance(error, IncompatiblePeer) and (lacking := _lacking(transport)):
        return LinkError(f"{place} and lumitui have no common algorithm: {lacking}.", _MORE)
    text = sock.said if sock else ""
    # OpenSSH 9.8 and later no longer name the option.
    if "maxstartups" in text.lower() or text.startswith("Not allowed at this time"):
        return TurnedAway(
            f"{place} refuses new connections: {text}.",
            "Too many users are logging in; try again in a minute.",
        )
    silent = isinstance(error.__context__, TimeoutError)
    nothing = f"it sent nothing within {host.connect_timeout:g} s"
    proxy = sock.complaint() if sock and host.proxy_command else ""
    if sock and sock.greeted and not proxy:
        return LinkError(
            f"The connection to {place} was lost during the key exchange: "
            f"{'no answer' if silent else 'it was cut or damaged'}.",
            "Check your network and try again; nothing was sent.",
        )
    if host.proxy_command:
        return LinkError(
            f"The ProxyCommand to {host.hostname} failed: "
            f"{proxy or (nothing if silent else 'it ended')}.",
            f"Try it in a terminal: {host.proxy_command}",
        )
    if silent:
        return LinkError(
            f"{place} accepted the connection, but {nothing}.",
            "Check your network and the port; the login node may also be overloaded.",
        )
    if text:
        return LinkError(
            f"{place} is not an SSH server: it sent {text!r}.",
            "Check the port; a busy login node may also refuse new connections.",
        )
    return LinkError(
        f"{place} ended the connection before the login ({error or type(error).__name__}).",
        "It may refuse new connections; try again in a minute.",
    )
