"""Configurations of ssh, each with what OpenSSH makes of it; and others put together by chance."""

import random
from dataclasses import dataclass, replace

from tests.support.servers.clients.two_clients import Person

KNOWN = "[127.0.0.1]:{port} {key}\n"
RSA_KNOWN = "[127.0.0.1]:{port} {rsa}\n"
YES, NO = Person(trusts=True), Person(trusts=False)
NEVER = "/nonexistent/lumitui"


@dataclass(frozen=True)
class Case:
    """One configuration; `{names}` in it are those of `Laptop.names`."""

    name: str
    accepts: bool
    """Whether OpenSSH logs in."""
    lines: str = ""
    known: str = KNOWN
    person: Person = NO
    stricter: str = ""
    """What lumitui says when it refuses what OpenSSH accepts."""
    only_lumitui_asks: bool = False
    own_identity: bool = False
    """Whether `lines` say which key to use."""


CASES = (
    Case("nothing set", True),
    # Revoked host keys
    Case("revoked: a list", True, "RevokedHostKeys {F}/others.list", stricter="RevokedHostKeys"),
    Case("revoked: a list with the key", False, "RevokedHostKeys {F}/revoked.list"),
    Case("revoked: none", True, "RevokedHostKeys none"),
    Case("revoked: by a marker", False, known=KNOWN + "@revoked * {key}\n"),
    # Which keys are known
    Case("known: nothing, and the person declines", False, known=""),
    Case("known: nothing, and the person says yes", True, known="", person=YES),
    Case("known: another key of that type", False, known="[127.0.0.1]:{port} {other}\n",
         person=YES),
    Case("known: without the port", True, known="127.0.0.1 {key}\n"),
    Case("known: without the port, another key", False, known="127.0.0.1 {other}\n"),
    Case("known: with the port another key, without it this one", False,
         known="[127.0.0.1]:{port} {other}\n127.0.0.1 {key}\n"),
    Case("known: an alias", True, "HostKeyAlias cluster", known="cluster {key}\n"),
    Case("known: an alias does not use the address", False, "HostKeyAlias cluster"),
    Case("known: an alias has no port", False, "HostKeyAlias cluster",
         known="[cluster]:{port} {key}\n"),
    Case("known: by the global file", True, "GlobalKnownHostsFile {F}/global", known=""),
    Case("known: the user's file is none", False, "UserKnownHostsFile none"),
    Case("known: a file named by %k", True, "UserKnownHostsFile {F}/known-%k", known=""),
    Case("known: a file named by ${{}}", True, "UserKnownHostsFile ${{LUMITUI_PLACE}}/global",
         known=""),
    Case("known: only the RSA key", True, known=RSA_KNOWN),
    Case("known: a key of another type than the one that is shown", False,
         "HostKeyAlgorithms ssh-ed25519", known=RSA_KNOWN, person=YES),
    Case("known: a line with the wrong type", False,
         known="[127.0.0.1]:{port} ssh-rsa {blob}\n"),
    Case("known: an alias that is called none", False, "HostKeyAlias none"),
    Case("known: lines that end as on Windows", True, known="[127.0.0.1]:{port} {key}\r\n"),
    *(Case(f"known: U+{ord(end):04X} ends no line", False,
           known="elsewhere {other} " + end + KNOWN) for end in "\r\f\x1c\x85\u2028"),
    *(Case(f"known: U+{ord(blank):04X} is no blank", False,
           known="[127.0.0.1]:{port}" + blank + "{key}\n") for blank in "\r\f\x1c\xa0\u2003"),
    Case("known: a NUL ends a line", False, known="\0" + KNOWN),
    Case("known: a NUL behind the key", True, known="[127.0.0.1]:{port} {key}\0\xa0\n"),
    Case("known: a salt of another length", False, known="{short_salt} {key}\n"),
    Case("known: a salt as it should be", True, known="{salt} {key}\n"),
    Case("known: another kind of hash", False, known="|2|*,* {key}\n"),
    Case("known: two signs of negation", True, known="!![127.0.0.1]:{port},* {key}\n"),
    Case("command: gives the key", True, "KnownHostsCommand /bin/cat {F}/global",
         stricter="KnownHostsCommand"),
    Case("command: revokes", False, "KnownHostsCommand /bin/echo @revoked %H %t %K"),
    Case("command: none", True, "KnownHostsCommand none"),
    Case("addresses: another key", True, "CheckHostIP yes", stricter="CheckHostIP"),
    # Strictness
    Case("strict yes: known", True, "StrictHostKeyChecking yes"),
    Case("strict yes: not known, and nobody is asked", False, "StrictHostKeyChecking yes",
         known="", person=YES),
    Case("strict accept-new: not known", True, "StrictHostKeyChecking accept-new", known=""),
    Case("strict accept-new: changed", False, "StrictHostKeyChecking accept-new",
         known="[127.0.0.1]:{port} {other}\n"),
    Case("strict accept-new: revoked", False,
         "StrictHostKeyChecking accept-new\nRevokedHostKeys {F}/revoked.list", known=""),
    Case("strict no: not known", True, "StrictHostKeyChecking no", known="",
         stricter="StrictHostKeyChecking"),
    Case("strict off: not known, and the person says yes", True, "StrictHostKeyChecking off",
         known="", person=YES, only_lumitui_asks=True),
    Case("strict no: changed", True, "StrictHostKeyChecking no",
         known="[127.0.0.1]:{port} {other}\n", stricter="changed"),
    Case("strict ask in batch mode: not known", False, "BatchMode yes", known="", person=YES),
    Case("localhost without authentication", True, "NoHostAuthenticationForLocalhost yes",
         known="", stricter="NoHostAuthenticationForLocalhost"),
    Case("DNS says nothing", False, "VerifyHostKeyDNS yes", known=""),
    # Algorithms
    Case("host keys: RSA only, known", True, "HostKeyAlgorithms rsa-sha2-512", known=RSA_KNOWN),
    Case("host keys: RSA only, ed25519 known", False, "HostKeyAlgorithms rsa-sha2-512"),
    Case("host keys: an order of one's own", False, "HostKeyAlgorithms rsa-sha2-256,ssh-ed25519",
         person=YES),
    Case("host keys: one added, RSA known", True, "HostKeyAlgorithms +ssh-rsa", known=RSA_KNOWN),
    Case("host keys: one moved to the front", False, "HostKeyAlgorithms ^rsa-sha2-256"),
    Case("host keys: RSA known without the port", False, known="127.0.0.1 {rsa}\n"),
    Case("host keys: RSA known, and a key that is revoked", True,
         known="[127.0.0.1]:{port} {other}\n" + RSA_KNOWN + "@revoked * {other}\n"),
    Case("host keys: none that the site has", False, "HostKeyAlgorithms ecdsa-sha2-nistp521"),
    Case("host keys: removed from the list", False, "HostKeyAlgorithms -ssh-ed25519*"),
    Case("host keys: RSA shorter than asked", False,
         "HostKeyAlgorithms rsa-sha2-512\nRequiredRSASize 4096", known=RSA_KNOWN),
    Case("kex: one that both have", True, "KexAlgorithms diffie-hellman-group14-sha256"),
    Case("kex: one that the site has under another name only", False,
         "KexAlgorithms curve25519-sha256"),
    Case("kex: one that the site has not", False, "KexAlgorithms diffie-hellman-group18-sha512"),
    Case("ciphers: one that both have", True, "Ciphers aes256-ctr"),
    Case("ciphers: one that the site has not", False, "Ciphers aes192-ctr"),
    Case("ciphers: one that lumitui has not", True, "Ciphers chacha20-poly1305@openssh.com",
         stricter="Ciphers"),
    Case("MACs: one that both have", True, "Ciphers aes256-ctr\nMACs hmac-sha2-512"),
    Case("MACs: one that the site has not", False,
         "Ciphers aes256-ctr\nMACs hmac-sha2-256-etm@openssh.com"),
    Case("MACs: do not matter with GCM", True,
         "Ciphers aes256-gcm@openssh.com\nMACs hmac-sha2-256-etm@openssh.com"),
    *(Case(f"{keyword}: all removed", False, f"{keyword} -*") for keyword in
      ("HostKeyAlgorithms", "KexAlgorithms", "Ciphers", "PubkeyAcceptedAlgorithms")),
    Case("MACs: all removed", False, "Ciphers aes256-ctr\nMACs -*"),
    Case("MACs: all removed, with GCM", True, "Ciphers aes256-gcm@openssh.com\nMACs -*"),
    Case("compression", True, "Compression yes"),
    Case("rekeying after every packet", True, "RekeyLimit 16"),
    Case("rekeying soon", True, "RekeyLimit 1M 1h"),
    # Ways to log in
    Case("no public keys", False, "PubkeyAuthentication no"),
    Case("public keys, unbound", True, "PubkeyAuthentication unbound"),
    Case("preferred: passwords only", False, "PreferredAuthentications password"),
    Case("preferred: none", False, "PreferredAuthentications none"),
    Case("preferred: a name with a blank", False,
         'PreferredAuthentications "password, publickey"'),
    Case("preferred: keys only", True, "PreferredAuthentications publickey"),
    Case("preferred: one that lumitui has not", False, "PreferredAuthentications gssapi-with-mic"),
    Case("accepted: not the key's type", False, "PubkeyAcceptedAlgorithms rsa-sha2-512"),
    Case("accepted: removed from the list", False, "PubkeyAcceptedAlgorithms -ssh-ed25519"),
    Case("accepted: a pattern", True, "PubkeyAcceptedAlgorithms ssh-ed*"),
    Case("accepted: a pattern and an exception", False,
         "PubkeyAcceptedAlgorithms !ssh-ed25519,*"),
    Case("host keys: a pattern", True, "HostKeyAlgorithms ssh-ed*"),
    Case("accepted: the RSA key's", True,
         "IdentityFile {F}/rsa\nPubkeyAcceptedAlgorithms rsa-sha2-256", own_identity=True),
    Case("accepted: an RSA key too short", False, "IdentityFile {F}/rsa\nRequiredRSASize 4096",
         own_identity=True),
    Case("the agent's key", True, "IdentityAgent {F}/agent\nIdentitiesOnly no\nIdentityFile none",
         own_identity=True),
    Case("the agent's key, of a type not accepted", False,
         "IdentityAgent {F}/agent\nIdentitiesOnly no\nIdentityFile none\n"
         "PubkeyAcceptedAlgorithms rsa-sha2-*", own_identity=True),
    Case("the agent by $NAME", True,
         "IdentityAgent $LUMITUI_AGENT\nIdentitiesOnly no\nIdentityFile none", own_identity=True),
    # Files of keys
    Case("a key that others may read", False, "IdentityFile {F}/open", own_identity=True),
    Case("PKCS#8, RSA", True, "IdentityFile {F}/rsa.p8", own_identity=True),
    Case("PKCS#8, ECDSA", True, "IdentityFile {F}/ecdsa.p8", own_identity=True),
    Case("PKCS#8, RSA, with a passphrase", True, "IdentityFile {F}/rsa.locked.p8",
         person=Person(secret="open sesame"), own_identity=True),
    Case("PKCS#8, a wrong passphrase", False, "IdentityFile {F}/rsa.locked.p8",
         person=Person(secret="guess"), own_identity=True),
    Case("a passphrase in batch mode", False, "IdentityFile {F}/rsa.locked.p8\nBatchMode yes",
         person=Person(secret="open sesame"), own_identity=True),
    Case("PEM, ECDSA", True, "IdentityFile {F}/ecdsa.pem", own_identity=True),
    Case("a certificate", True, "IdentityFile {F}/signed\nCertificateFile {F}/signed-by-%k.pub",
         own_identity=True),
    Case("a certificate of a type not accepted", False,
         "IdentityFile {F}/signed\nCertificateFile {F}/signed-by-%k.pub\n"
         "PubkeyAcceptedAlgorithms ssh-ed25519", own_identity=True),
    Case("tokens in IdentityFile", True, "IdentityFile {F}/tokens-%h-%p-%n-%r-%i-%u-%k-%%-%L",
         own_identity=True),
    Case("%C in IdentityFile", True, "IdentityFile {F}/%C", own_identity=True),
    Case("${{}} in IdentityFile", True, "IdentityFile ${{LUMITUI_PLACE}}/rsa", own_identity=True),
    Case("${{}} that is not set", False, "IdentityFile ${{LUMITUI_UNSET}}/rsa",
         own_identity=True),
    Case("a token that does not exist", False, "IdentityFile {F}/%Y", own_identity=True),
    # The way there
    Case("bind: an address of this machine", True, "BindAddress 127.0.0.5"),
    Case("bind: an address of another", False, "BindAddress 192.0.2.99"),
    Case("bind: the key is good from there only", True,
         "BindAddress 127.0.0.5\nIdentityFile {F}/from", own_identity=True),
    Case("bind: the key is not good from elsewhere", False, "IdentityFile {F}/from",
         own_identity=True),
    Case("bind: an interface", True, "BindInterface lo", stricter="BindInterface"),
    Case("address family: the right one", True, "AddressFamily inet"),
    Case("no port", False, "Port ssh"),
    Case("address family: the wrong one", False, "AddressFamily inet6"),
    Case("a proxy that passes its socket", True,
         "ProxyCommand python3 {F}/dial.py %h %p\nProxyUseFdpass yes",
         stricter="ProxyUseFdpass"),
    Case("a proxy that passes no socket", False,
         "ProxyCommand true %h %p\nProxyUseFdpass yes"),
    Case("a token that a proxy has not", False, "ProxyCommand nc %h %p %i"),
    # Without a meaning for lumitui
    Case("forwards and tunnels", True,
         "ForwardAgent yes\nForwardX11 yes\nLocalForward {F}/s 127.0.0.1:1\nRequestTTY force"),
    Case("tunes", True, "IPQoS none\nTCPKeepAlive no\nServerAliveInterval 7\nLogLevel QUIET\n"
         "VisualHostKey yes\nFingerprintHash md5\nCheckHostIP no\nUpdateHostKeys no"),
    Case("security keys and tokens", True, "SecurityKeyProvider none\nPKCS11Provider none"),
    Case("a local command", True, "PermitLocalCommand yes\nLocalCommand true"),
    Case("an unknown option", False, "Frobnicate yes"),
    Case("an unknown option that is to be ignored", True, "IgnoreUnknown Frob*\nFrobnicate yes"),
)  # fmt: skip


# One line of a configuration is drawn from one of these rows.
LINES = (
    ("RevokedHostKeys {F}/revoked.list",
     'RevokedHostKeys "{F}/others.list"', "RevokedHostKeys={F}/missing", "RevokedHostKeys none"),
    ("PubkeyAuthentication no", "PubkeyAuthentication host-bound", "pubkeyauthentication=no"),
    ("PreferredAuthentications publickey,password", "PreferredAuthentications nonsense,publickey",
     "PreferredAuthentications keyboard-interactive"),
    ("HostKeyAlgorithms ssh-ed25519", "HostKeyAlgorithms +ssh-rsa", "HostKeyAlgorithms ssh-rsa",
     "HostKeyAlgorithms ^rsa-sha2-256", "HostKeyAlgorithms -rsa*",
     "HostKeyAlgorithms rsa-sha2-256,ssh-ed25519"),
    ("PubkeyAcceptedAlgorithms +ssh-rsa", "PubkeyAcceptedKeyTypes rsa-sha2-256",
     "PubkeyAcceptedAlgorithms ssh-ed25519,rsa-sha2-512", "PubkeyAcceptedAlgorithms -ssh-ed*"),
    ("Ciphers aes256-ctr,aes256-cbc", "Ciphers +3des-cbc", "Ciphers ^aes256-ctr",
     "Ciphers aes128-cbc"),
    ("MACs hmac-sha1", "MACs -hmac-sha2*", "MACs umac-64@openssh.com", "MACs hmac-sha2-256"),
    ("KexAlgorithms curve25519-sha256", "KexAlgorithms -diffie*",
     "KexAlgorithms diffie-hellman-group1-sha1"),
    ("BindAddress 127.0.0.9", "BindAddress localhost", "BindAddress ::1"),
    ("AddressFamily inet", "AddressFamily any", "AddressFamily inet6"),
    ("StrictHostKeyChecking yes", "StrictHostKeyChecking ask", "StrictHostKeyChecking accept-new",
     "StrictHostKeyChecking no"),
    ("UserKnownHostsFile {F}/global", 'UserKnownHostsFile "{F}/global" /dev/null',
     "UserKnownHostsFile none", "UserKnownHostsFile {F}/known-%k {F}/nothing"),
    ("GlobalKnownHostsFile {F}/global", "GlobalKnownHostsFile {F}/global-other"),
    ("HostKeyAlias cluster", "HostKeyAlias site", "HostKeyAlias CLUSTER"),
    ("KnownHostsCommand /bin/cat {F}/global", 'KnownHostsCommand "/bin/echo" "%H" "%t" "%K"',
     "KnownHostsCommand /bin/echo %I %n %h"),
    ("BatchMode yes", "CheckHostIP yes", "RequiredRSASize 8192", "NumberOfPasswordPrompts 0"),
    ("HostName localhost", "HostName LOCALHOST", "HostName ip6-localhost", "HostName %h"),
    ("IdentitiesOnly no",),
    ("IdentityAgent {F}/agent", "IdentityAgent $LUMITUI_AGENT", "IdentityAgent SSH_AUTH_SOCK",
     "IdentityAgent ${{LUMITUI_PLACE}}/agent", 'IdentityAgent "{F}/missing"'),
    ("IdentityFile {F}/rsa", "IdentityFile {F}/open", "IdentityFile {F}/ecdsa.pem",
     "IdentityFile {F}/rsa.locked.p8", "IdentityFile none", 'IdentityFile "{F}/ecdsa"',
     "IdentityFile {F}/held.pub", "IdentityFile {F}/signed"),
    ("CertificateFile {F}/signed-by-site.pub", "CertificateFile {F}/missing"),
    ("PasswordAuthentication no", "KbdInteractiveAuthentication no", "KbdInteractiveDevices pam"),
    ("RekeyLimit 500K 30", "ConnectTimeout 1m", "ProxyJump none", "CanonicalizeHostname always",
     "HashKnownHosts yes", "SetEnv FOO=bar", "User nobody", "ServerAliveInterval 1m"),
)  # fmt: skip
KNOWN_LINES = (
    "[127.0.0.1]:{port} {key}", "127.0.0.1 {key}", "localhost {key}", "[localhost]:{port} {key}",
    "* {key}", "*,!127.* {key}", "[127.0.0.1]:{port} {other}", "127.0.0.1 {other}",
    "[127.0.0.1]:{port} {rsa}", "127.0.0.1 {rsa}", "@revoked * {key}", "@revoked * {other}",
    "@cert-authority * {other}", "@nonsense * {key}", "# [127.0.0.1]:{port} {key}",
    "  [127.0.0.1]:{port}\t{key} a comment", "[127.0.0.1]:{port} ssh-rsa {blob}", "CLUSTER {key}",
    "[127.0.0.1]:{port} {blob}", "[127.0.0.?]:{port} {key}", "[127.0.0.1]:* {key}",
    "|1|bad|bad {key}", "", "[127.0.0.1]:{port} ssh-ed25519", "site {key}",
)  # fmt: skip


def odd_case(seed: int) -> Case:
    """Return a configuration put together by chance; what OpenSSH makes of it is not known."""
    draw = random.Random(seed)
    lines = [draw.choice(draw.choice(LINES)) for _ in range(draw.choice((1, 1, 2, 2, 3, 4)))]
    known = "".join(draw.choice(KNOWN_LINES) + "\n" for _ in range(draw.choice((0, 1, 1, 2, 3))))
    person = draw.choice((NO, YES, Person(True, "open sesame"), Person(False, "open sesame")))
    own = any(line.startswith("IdentityFile") for line in lines) and draw.random() < 0.7
    case = Case(f"odd {seed}", True, "\n".join(lines), KNOWN, person, own_identity=own)
    return replace(case, known=known) if draw.random() < 0.6 else case
