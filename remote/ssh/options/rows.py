"""The table of ssh_config(5)'s options, OpenSSH 9.2 (Debian) to 10.5, and how lumitui treats them.

A new keyword is a row here. `tests/remote/ssh/options/test_rows.py` checks the keywords of the
manual pages and of `ssh -G`; `test_parity.py` beside it compares the behaviour with the real `ssh`.
"""

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lumitui.remote.site.errors import LinkError

ALGORITHMS = ("Ciphers", "MACs", "KexAlgorithms", "HostKeyAlgorithms", "PubkeyAcceptedAlgorithms")
"""The options with lists of algorithms, which are always set."""

_OFF = ("none", "no", "false", "")


@dataclass(frozen=True)
class Row:
    """One option."""

    keyword: str
    verdict: Literal["honoured", "harmless", "refused"]
    why: str
    """The way lumitui honours it, or the reason why ignoring it is harmless or honouring it
    impossible."""
    fix: str = ""
    note: str = ""
    """A note for the user if its value is not among `unless`."""
    unless: tuple[str, ...] = _OFF
    """Values (patterns, in lowercase) that need neither a refusal nor a note."""


# Each group: the verdict, its reason, and the options.
_GROUPS: tuple[tuple[Literal["honoured", "harmless"], str, str], ...] = (
    ("honoured", "`ssh -G` has applied it before lumitui reads its answer",
     "Host Match Include Tag IgnoreUnknown HostName Port User CanonicalDomains "
     "CanonicalizeFallbackLocal CanonicalizeHostname CanonicalizeMaxDots "
     "CanonicalizePermittedCNAMEs"),
    ("honoured", "it has the effect that ssh_config(5) describes",
     "ProxyJump ProxyCommand AddressFamily BindAddress ConnectTimeout ServerAliveInterval "
     "RequiredRSASize UserKnownHostsFile GlobalKnownHostsFile HostKeyAlias HashKnownHosts "
     "PreferredAuthentications PubkeyAuthentication PasswordAuthentication "
     "KbdInteractiveAuthentication NumberOfPasswordPrompts BatchMode IdentityFile "
     "IdentitiesOnly IdentityAgent CertificateFile " + " ".join(ALGORITHMS)),
    ("harmless", "lumitui forwards no ports, sockets, displays or agents",
     "ClearAllForwardings DynamicForward ExitOnForwardFailure ForwardAgent ForwardX11 "
     "ForwardX11Timeout ForwardX11Trusted GatewayPorts LocalForward PermitRemoteOpen "
     "RemoteForward StreamLocalBindMask StreamLocalBindUnlink Tunnel TunnelDevice XAuthLocation"),
    ("harmless", "lumitui does not log in with GSSAPI or with the key of this machine",
     "GSSAPIAuthentication GSSAPIClientIdentity GSSAPIDelegateCredentials GSSAPIKexAlgorithms "
     "GSSAPIKeyExchange GSSAPIRenewalForcesRekey GSSAPIServerIdentity GSSAPITrustDns "
     "EnableSSHKeysign HostbasedAcceptedAlgorithms HostbasedAuthentication HostbasedKeyTypes"),
    ("harmless", "lumitui opens its own connection, with its own time limits",
     "ControlMaster ControlPath ControlPersist ConnectionAttempts ServerAliveCountMax "
     "TCPKeepAlive ChannelTimeout IPQoS Compression AppleMultiPath"),
    ("harmless", "lumitui sends its own commands, no variables, and opens no interactive session",
     "LocalCommand RemoteCommand SessionType RequestTTY SendEnv EnableEscapeCommandline "
     "EscapeChar ForkAfterAuthentication ObscureKeystrokeTiming StdinNull"),
    ("harmless", "it affects only ssh's output, logs, version text or the devices for questions",
     "LogLevel LogVerbose SyslogFacility VisualHostKey FingerprintHash WarnWeakCrypto "
     "VersionAddendum KbdInteractiveDevices"),
    ("harmless", "lumitui does not trust host certificates, store unused host keys, or add keys to "
        "an agent, and uses security keys only through an agent",
     "CASignatureAlgorithms UpdateHostKeys AddKeysToAgent UseKeychain SecurityKeyProvider"),
)  # fmt: skip

_ROWS = (
    *(Row(name, verdict, why) for verdict, why, names in _GROUPS for name in names.split()),
    # Ignoring these would trust more than OpenSSH does, or connect differently.
    Row("RefuseConnection", "refused", "it refuses the connection", unless=()),
    Row("RevokedHostKeys", "refused", "it does not read lists of revoked keys",
        "Put the keys into known_hosts, each in a line that begins with `@revoked *`, and remove "
        "RevokedHostKeys for this host."),
    Row("KnownHostsCommand", "refused", "it reads known host keys only from files"),
    Row("CheckHostIP", "refused", "it identifies a host by name, not by address"),
    Row("ProxyUseFdpass", "refused", "a ProxyCommand must relay the connection itself"),
    Row("BindInterface", "refused", "it connects from an address, not from an interface",
        "Use BindAddress with the address of this interface instead."),
    # lumitui treats these differently from OpenSSH, but never more loosely.
    Row("RekeyLimit", "honoured", "it renews session keys after this many bytes",
        note="lumitui renews session keys after this many bytes, at least 1 MiB, but not by time.",
        unless=("0 0", "???????* 0")),
    Row("StrictHostKeyChecking", "honoured", "yes never asks, and accept-new accepts a new key",
        note="lumitui asks about a new host key, and refuses a changed or revoked one.",
        unless=("yes", "true", "ask", "accept-new")),
    Row("NoHostAuthenticationForLocalhost", "harmless", "lumitui also checks this machine's key",
        note="lumitui checks this machine's host key like any other."),
    Row("VerifyHostKeyDNS", "harmless", "a DNS record can only increase the trust in a key",
        note="lumitui does not look up host keys in DNS; it asks about a new one.",
        unless=(*_OFF, "ask")),
    Row("PKCS11Provider", "harmless", "lumitui uses a token's keys only through an agent",
        note="lumitui does not open tokens; add their keys to an agent (ssh-add -s)."),
    Row("PermitLocalCommand", "harmless", "lumitui starts no local command",
        note="lumitui does not run LocalCommand."),
    Row("SetEnv", "harmless", "lumitui sends no variables",
        note="lumitui sends no variables; set them in your shell startup files at the site."),
)  # fmt: skip

ROWS: Mapping[str, Row] = {row.keyword.lower(): row for row in _ROWS}
"""The table, by the names in the output of `ssh -G`."""


def judge(
    host: str, values: Mapping[str, Sequence[str]], defaults: Mapping[str, Sequence[str]]
) -> tuple[str, ...]:
    """Return notes for the user about the options of `host`.

    Options with their value in `defaults` need none.

    Raises:
        LinkError: lumitui cannot honour an option; the message has its name and value.
    """
    notes = []
    for name, settings in values.items():
        row = ROWS.get(name) or Row(name, "refused", "lumitui does not know it", unless=())
        if settings == defaults.get(name) or all(_fits(one, row.unless) for one in settings):
            continue
        if row.verdict == "refused":
            raise LinkError(
                f"The ssh configuration sets {row.keyword} to {', '.join(settings)} for {host}, "
                f"which lumitui does not support: {row.why}.",
                row.fix
                or f"Remove {row.keyword} for this host (see man ssh_config), or use "
                "another host entry.",
            )
        if row.note:
            notes.append(f"{row.keyword} {', '.join(settings)}: {row.note}")
    return tuple(notes)


def _fits(value: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(value.strip().lower(), pattern) for pattern in patterns)
