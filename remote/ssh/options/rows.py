"""Every keyword of ssh_config(5), OpenSSH 9.2 (Debian) to 10.5, and what lumitui does with it.

A new keyword is a row here. `tests/remote/ssh/options/test_rows.py` goes over the keywords of the
manual pages and of `ssh -G`; `test_parity.py` beside it compares what can be seen from outside
with the real `ssh`.
"""

from collections.abc import Mapping

from lumitui.remote.ssh.options.option_row import Row, harmless, honoured

_BY_OPENSSH = "`ssh -G` has applied it before lumitui reads its answer"
_FORWARDS = "lumitui forwards no ports, sockets, displays or agents"
_SHELL = "it is about an interactive session, and lumitui opens none"
_GSSAPI = "lumitui does not log in with GSSAPI; it uses the other ways that the site accepts"
_HOSTBASED = "lumitui does not log in with the key of this machine"
_MASTER = "lumitui opens a connection of its own and shares it with nobody"
_WORDS = "it changes only what ssh prints or logs"
_GONE = "OpenSSH itself ignores it"

_ED, _EC, _CERT = "ssh-ed25519", "ecdsa-sha2-nistp", "-cert-v01@openssh.com"
_SIGNATURES = ",".join(
    [
        *(f"{kind}{_CERT}" for kind in (_ED, f"{_EC}256", f"{_EC}384", f"{_EC}521")),
        f"sk-ssh-ed25519{_CERT},sk-ecdsa-sha2-nistp256{_CERT}",
        f"rsa-sha2-512{_CERT},rsa-sha2-256{_CERT},{_ED},{_EC}256,{_EC}384,{_EC}521",
        "sk-ssh-ed25519@openssh.com,sk-ecdsa-sha2-nistp256@openssh.com,rsa-sha2-512,rsa-sha2-256",
    ]
)
_CIPHERS = (
    "chacha20-poly1305@openssh.com,aes128-gcm@openssh.com,aes256-gcm@openssh.com,"
    "aes128-ctr,aes192-ctr,aes256-ctr"
)
_MACS = (
    "hmac-sha2-256-etm@openssh.com,hmac-sha2-512-etm@openssh.com,hmac-sha1-etm@openssh.com,"
    "hmac-sha2-256,hmac-sha2-512,hmac-sha1"
)
_KEX = (
    "mlkem768x25519-sha256,curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256,"
    "ecdh-sha2-nistp384,ecdh-sha2-nistp521,diffie-hellman-group-exchange-sha256,"
    "diffie-hellman-group16-sha512,diffie-hellman-group18-sha512,diffie-hellman-group14-sha256"
)

ALGORITHMS = ("Ciphers", "MACs", "KexAlgorithms", "HostKeyAlgorithms", "PubkeyAcceptedAlgorithms")
"""The options that are lists of algorithms; each is always set."""

ROWS: Mapping[str, Row] = {
    # Which part of the configuration counts
    "Host": honoured(_BY_OPENSSH),
    "Match": honoured(_BY_OPENSSH),
    "Include": honoured(_BY_OPENSSH),
    "Tag": honoured(_BY_OPENSSH),
    "IgnoreUnknown": honoured(_BY_OPENSSH),
    "RefuseConnection": Row("refused", "it is there to refuse the connection"),
    # Where to
    "HostName": honoured("names the host"),
    "Port": honoured("is the port"),
    "User": honoured("is the name to log in with"),
    "CanonicalDomains": honoured(_BY_OPENSSH),
    "CanonicalizeFallbackLocal": honoured(_BY_OPENSSH),
    "CanonicalizeHostname": honoured(_BY_OPENSSH),
    "CanonicalizeMaxDots": honoured(_BY_OPENSSH),
    "CanonicalizePermittedCNAMEs": honoured(_BY_OPENSSH),
    "ProxyJump": honoured("each jump host is logged in to, and its key checked"),
    "ProxyCommand": honoured("is started with `exec` in a shell, with its own few tokens"),
    "ProxyUseFdpass": honoured("the command passes a connected socket"),
    # The way there
    "AddressFamily": honoured("limits the addresses that are tried", default="any"),
    "BindAddress": honoured("is where the connection comes from"),
    "BindInterface": Row(
        "refused",
        "it connects from an address, not from an interface",
        unless=("none", ""),
        fix="Replace it by BindAddress with the address that this interface has.",
    ),
    "ConnectTimeout": honoured("limits the wait for each address"),
    "ConnectionAttempts": harmless("the next request connects again"),
    "IPQoS": harmless("it marks packets for routers"),
    "TCPKeepAlive": harmless("lumitui keeps connections alive whatever it says"),
    "ServerAliveInterval": honoured("is the time between signs of life"),
    "ServerAliveCountMax": harmless("a silent link is given up after a time of lumitui's own"),
    "Compression": harmless("lumitui compresses code and files itself; a site need not"),
    "RekeyLimit": Row(
        "honoured",
        "new keys are made after so many bytes",
        unless=("* 0", "* none", "default", "default none"),
        note="lumitui makes new keys after so many bytes, but not after a time.",
    ),
    "ChannelTimeout": harmless("each request has a time limit of its own"),
    "VersionAddendum": harmless("it changes only how the client calls itself"),
    "ControlMaster": harmless(_MASTER),
    "ControlPath": harmless(_MASTER),
    "ControlPersist": harmless(_MASTER),
    # Algorithms
    "Ciphers": honoured("limits the ciphers", default=_CIPHERS),
    "MACs": honoured("limits the MACs", default=_MACS),
    "KexAlgorithms": honoured("limits the key exchange", default=_KEX),
    "HostKeyAlgorithms": honoured("limits the host's keys", default=_SIGNATURES),
    "PubkeyAcceptedAlgorithms": honoured(
        "limits the person's keys", default=_SIGNATURES, also=("PubkeyAcceptedKeyTypes",)
    ),
    "RequiredRSASize": honoured("shorter RSA keys are not used", default="1024"),
    "CASignatureAlgorithms": harmless("lumitui trusts no certificate of a host"),
    "WarnWeakCrypto": harmless(_WORDS),
    # The host's key
    "StrictHostKeyChecking": Row(
        "honoured",
        "yes never asks, accept-new never asks about a new key",
        unless=("yes", "true", "ask", "accept-new"),
        note="lumitui asks about a new host key, and refuses a changed or revoked one.",
        default="ask",
    ),
    "UserKnownHostsFile": honoured("names the lists of known keys"),
    "GlobalKnownHostsFile": honoured("names the lists of known keys"),
    "KnownHostsCommand": honoured("is run for more known keys"),
    "HostKeyAlias": honoured("is the name of the host's key"),
    "HashKnownHosts": honoured("a new key is kept under a hashed name"),
    "RevokedHostKeys": honoured("a key in these lists is refused, whatever else is known"),
    "CheckHostIP": honoured("a key that is known for the address must not differ"),
    "NoHostAuthenticationForLocalhost": harmless(
        "the key of a host on this machine is checked like any other",
        unless=("no", "false"),
        note="lumitui checks the key of a host on this machine like any other.",
    ),
    "VerifyHostKeyDNS": harmless(
        "what DNS says of a key makes nobody trust it less",
        unless=("no", "false", "ask"),
        note="lumitui does not look host keys up in DNS; it asks about a new one.",
    ),
    "UpdateHostKeys": harmless("lumitui keeps no key that was not used"),
    "VisualHostKey": harmless(_WORDS),
    "FingerprintHash": harmless(_WORDS),
    # How to log in
    "PreferredAuthentications": honoured("is the order of the ways to log in, and their list"),
    "PubkeyAuthentication": honoured("no switches it off", also=("DSAAuthentication",)),
    "PasswordAuthentication": honoured("no switches it off"),
    "KbdInteractiveAuthentication": honoured(
        "no switches it off",
        also=("ChallengeResponseAuthentication", "SKeyAuthentication", "TISAuthentication"),
    ),
    "KbdInteractiveDevices": honoured("the server is told"),
    "NumberOfPasswordPrompts": honoured("limits the questions; lumitui asks at most twice"),
    "BatchMode": honoured("nothing is asked"),
    "IdentityFile": honoured("names the keys", also=("IdentityFile2",)),
    "IdentitiesOnly": honoured("keeps other keys of the agent at home"),
    "IdentityAgent": honoured("names the agent"),
    "CertificateFile": honoured("names the certificates"),
    "AddKeysToAgent": harmless("lumitui gives no key to an agent"),
    "PKCS11Provider": Row(
        "harmless",
        "lumitui opens no token; its keys are used through an agent",
        unless=("none", ""),
        note="lumitui does not open tokens; add their keys to an agent (ssh-add -s).",
        also=("SmartcardDevice",),
    ),
    "SecurityKeyProvider": harmless("lumitui uses security keys through an agent only"),
    "EnableSSHKeysign": harmless(_HOSTBASED),
    "HostbasedAcceptedAlgorithms": harmless(_HOSTBASED),
    "HostbasedAuthentication": harmless(_HOSTBASED),
    "GSSAPIAuthentication": harmless(_GSSAPI),
    "GSSAPIClientIdentity": harmless(_GSSAPI),
    "GSSAPIDelegateCredentials": harmless(_GSSAPI),
    "GSSAPIKexAlgorithms": harmless(_GSSAPI),
    "GSSAPIKeyExchange": harmless(_GSSAPI),
    "GSSAPIRenewalForcesRekey": harmless(_GSSAPI),
    "GSSAPIServerIdentity": harmless(_GSSAPI),
    "GSSAPITrustDns": harmless(_GSSAPI),
    # What else travels
    "ClearAllForwardings": harmless(_FORWARDS),
    "DynamicForward": harmless(_FORWARDS),
    "ExitOnForwardFailure": harmless(_FORWARDS),
    "ForwardAgent": harmless(_FORWARDS),
    "ForwardX11": harmless(_FORWARDS),
    "ForwardX11Timeout": harmless(_FORWARDS),
    "ForwardX11Trusted": harmless(_FORWARDS),
    "GatewayPorts": harmless(_FORWARDS),
    "LocalForward": harmless(_FORWARDS),
    "PermitRemoteOpen": harmless(_FORWARDS),
    "RemoteForward": harmless(_FORWARDS),
    "StreamLocalBindMask": harmless(_FORWARDS),
    "StreamLocalBindUnlink": harmless(_FORWARDS),
    "Tunnel": harmless(_FORWARDS),
    "TunnelDevice": harmless(_FORWARDS),
    "XAuthLocation": harmless(_FORWARDS),
    # What runs, and what is shown
    "LocalCommand": harmless("lumitui starts no local command"),
    "PermitLocalCommand": harmless(
        "lumitui starts no local command",
        unless=("no", "false"),
        note="lumitui does not run LocalCommand.",
    ),
    "RemoteCommand": harmless("lumitui sends its own commands"),
    "SessionType": harmless("lumitui sends its own commands"),
    "RequestTTY": harmless("lumitui needs no terminal at the site"),
    "SendEnv": harmless("lumitui sends no variables"),
    "SetEnv": harmless(
        "lumitui sends no variables",
        note="lumitui sends no variables; set them in the login files of the site.",
    ),
    "EnableEscapeCommandline": harmless(_SHELL),
    "EscapeChar": harmless(_SHELL),
    "ForkAfterAuthentication": harmless(_SHELL),
    "ObscureKeystrokeTiming": harmless(_SHELL),
    "StdinNull": harmless(_SHELL),
    "LogLevel": harmless(_WORDS),
    "LogVerbose": harmless(_WORDS),
    "SyslogFacility": harmless(_WORDS),
    # Of Apple's OpenSSH
    "AppleMultiPath": harmless("it uses a second network at the same time"),
    "UseKeychain": harmless("lumitui asks for a passphrase that no agent has"),
    # Older options
    "AFSTokenPassing": harmless(_GONE),
    "Cipher": harmless(_GONE),
    "CompressionLevel": harmless(_GONE),
    "FallBackToRsh": harmless(_GONE),
    "GlobalKnownHostsFile2": harmless(_GONE),
    "KeepAlive": harmless("an older name of TCPKeepAlive"),
    "KerberosAuthentication": harmless(_GONE),
    "KerberosTGTPassing": harmless(_GONE),
    "Protocol": harmless(_GONE),
    "RhostsAuthentication": harmless(_GONE),
    "RhostsRSAAuthentication": harmless(_GONE),
    "RSAAuthentication": harmless(_GONE),
    "UsePrivilegedPort": harmless(_GONE),
    "UserKnownHostsFile2": harmless(_GONE),
    "UseRoaming": harmless(_GONE),
    "UseRsh": harmless(_GONE),
    "HostbasedKeyTypes": harmless(_HOSTBASED),
}
