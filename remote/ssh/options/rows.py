"""What lumitui does with each option of ssh_config(5), OpenSSH 9.2 (Debian) to 10.5: a table.

A new keyword is a row here. `tests/remote/ssh/options/test_rows.py` goes over the keywords of the
manual pages and of `ssh -G`; `test_parity.py` beside it compares what can be seen from outside
with the real `ssh`.
"""

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lumitui.remote.site.errors import LinkError

ALGORITHMS = ("Ciphers", "MACs", "KexAlgorithms", "HostKeyAlgorithms", "PubkeyAcceptedAlgorithms")
"""The options that are lists of algorithms; each is always set."""

_OFF = ("none", "no", "false", "")


@dataclass(frozen=True)
class Row:
    """One option. Text is a sentence or the part of one that says it."""

    keyword: str
    verdict: Literal["honoured", "harmless", "refused"]
    why: str
    """What honours it, why it may be passed over, or why it cannot be honoured."""
    fix: str = ""
    """What to do where it is refused."""
    note: str = ""
    """What a user should know when it has another value than those of `unless`."""
    unless: tuple[str, ...] = _OFF
    """Values (patterns, in lower case) with which it is neither refused nor worth a note."""


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
    ("harmless", "lumitui opens a connection of its own, with time limits of its own",
     "ControlMaster ControlPath ControlPersist ConnectionAttempts ServerAliveCountMax "
     "TCPKeepAlive ChannelTimeout IPQoS Compression AppleMultiPath"),
    ("harmless", "lumitui sends its own commands, no variables, and opens no interactive session",
     "LocalCommand RemoteCommand SessionType RequestTTY SendEnv EnableEscapeCommandline "
     "EscapeChar ForkAfterAuthentication ObscureKeystrokeTiming StdinNull"),
    ("harmless", "it changes only what ssh prints, logs, calls itself or may be asked with",
     "LogLevel LogVerbose SyslogFacility VisualHostKey FingerprintHash WarnWeakCrypto "
     "VersionAddendum KbdInteractiveDevices"),
    ("harmless", "lumitui trusts no certificate of a host, keeps no host key that was not used, "
     "gives no key to an agent, and uses security keys through an agent only",
     "CASignatureAlgorithms UpdateHostKeys AddKeysToAgent UseKeychain SecurityKeyProvider"),
)  # fmt: skip

_ROWS = (
    *(Row(name, verdict, why) for verdict, why, names in _GROUPS for name in names.split()),
    # Without these lumitui would trust more than OpenSSH does, or go another way.
    Row("RefuseConnection", "refused", "it is there to refuse the connection", unless=()),
    Row("RevokedHostKeys", "refused", "it does not read lists of revoked keys",
        "Put the keys into known_hosts, each in a line that begins with `@revoked *`, and remove "
        "RevokedHostKeys for this host."),
    Row("KnownHostsCommand", "refused", "it takes known host keys from files only"),
    Row("CheckHostIP", "refused", "it knows a host by its name, not by its address"),
    Row("ProxyUseFdpass", "refused", "a ProxyCommand must relay the connection itself"),
    Row("BindInterface", "refused", "it connects from an address, not from an interface",
        "Replace it by BindAddress with the address that this interface has."),
    # These are read otherwise than OpenSSH does, and never more loosely.
    Row("RekeyLimit", "honoured", "new keys are made after so many bytes",
        note="lumitui makes new keys after so many bytes, 1 MiB at least, but not after a time.",
        unless=("0 0", "???????* 0")),
    Row("StrictHostKeyChecking", "honoured", "yes never asks, accept-new not about a new key",
        note="lumitui asks about a new host key, and refuses a changed or revoked one.",
        unless=("yes", "true", "ask", "accept-new")),
    Row("NoHostAuthenticationForLocalhost", "harmless", "the key of this machine is also checked",
        note="lumitui checks the key of a host on this machine like any other."),
    Row("VerifyHostKeyDNS", "harmless", "what DNS says of a key makes nobody trust it less",
        note="lumitui does not look host keys up in DNS; it asks about a new one.",
        unless=(*_OFF, "ask")),
    Row("PKCS11Provider", "harmless", "lumitui opens no token; its keys are used through an agent",
        note="lumitui does not open tokens; add their keys to an agent (ssh-add -s)."),
    Row("PermitLocalCommand", "harmless", "lumitui starts no local command",
        note="lumitui does not run LocalCommand."),
    Row("SetEnv", "harmless", "lumitui sends no variables",
        note="lumitui sends no variables; set them in the login files of the site."),
)  # fmt: skip

ROWS: Mapping[str, Row] = {row.keyword.lower(): row for row in _ROWS}
"""The table by the names that `ssh -G` prints."""


def judge(
    host: str, values: Mapping[str, Sequence[str]], defaults: Mapping[str, Sequence[str]]
) -> tuple[str, ...]:
    """Return what a user should know of how the options of `host` are read.

    An option with the value that it has in `defaults` is what everybody has, who sets nothing.

    Raises:
        LinkError: an option cannot be honoured; the message has its name and value.
    """
    notes = []
    for name, given in values.items():
        row = ROWS.get(name) or Row(name, "refused", "lumitui does not know it", unless=())
        if given == defaults.get(name) or all(_fits(value, row.unless) for value in given):
            continue
        if row.verdict == "refused":
            raise LinkError(
                f"The ssh configuration sets {row.keyword} to {', '.join(given)} for {host}, "
                f"which lumitui cannot honour: {row.why}.",
                row.fix
                or f"Remove {row.keyword} for this host (see man ssh_config), or use "
                "another host entry.",
            )
        if row.note:
            notes.append(f"{row.keyword} {', '.join(given)}: {row.note}")
    return tuple(notes)


def _fits(value: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(value.strip().lower(), pattern) for pattern in patterns)
