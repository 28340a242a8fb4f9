"""Names of files with secrets: a table with sources, and exceptions.

The names come from public lists (GitHub's gitignore templates, gitrob's signatures, gitleaks'
rules) and from the manuals of the programs that write these files.
"""

import fnmatch
import posixpath
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

HEAD_BYTES = 1 << 18
"""Bytes to read for rules that check contents; a typical file is 4 kB."""


@dataclass(frozen=True)
class NameRule:
    """Names that usually indicate a secret."""

    what: str
    """The kind of file, as the end of a sentence."""
    source: str
    patterns: str
    """Shell patterns in lower case, separated by spaces: for the name, or with a slash for the end
    of the path. A `*` after a folder matches everything in it."""
    holds: Callable[[bytes], object] | None = None
    """Decides by the start of the contents; None if the name suffices."""


_BLOCKS = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----")
_PUBLIC_BLOCKS = re.compile(rb"CERTIFICATE|PUBLIC KEY|X509 CRL|DH PARAMETERS|EC PARAMETERS")
_LOGIN_IN_ADDRESS = rb"://[^\s/:@'\"]+:[^\s/@'\"$]+@"
_GIT_TOKEN = re.compile(
    rb"^\s*(?:oauth-?)?(?:token|password)\s*=\s*\S|://[^\s/:@'\"$]{16,}@|authorization:|"
    + _LOGIN_IN_ADDRESS,
    re.IGNORECASE | re.MULTILINE,
)
_ASSIGNS = re.compile(rb"^\s*(?:export\s+)?[A-Za-z_][A-Za-z0-9_]*=\S", re.MULTILINE)


def _not_only_public(head: bytes) -> bool:
    """Return whether a PEM file has more than certificates and public keys."""
    blocks = _BLOCKS.findall(head)
    return not blocks or not all(_PUBLIC_BLOCKS.search(block) for block in blocks)


_TEMPLATES = "github.com/github/gitignore"
_GITROB = "michenriksen/gitrob, core/signatures.go"

NAMES: tuple[NameRule, ...] = (
    NameRule("environment variables with keys",
             f"{_TEMPLATES}, Node.gitignore and Python.gitignore; direnv(1)",
             ".env .env[._-]* *.env .envrc .envrc.*"),
    NameRule("environment variables with keys",
             f"{_TEMPLATES}, Python.gitignore: `env` and `ENV`, there as folders",
             "env", _ASSIGNS.search),
    NameRule("passwords of a machine's users",
             "shadow(5), gshadow(5), pam_unix(8): the files and the copies that passwd(1) keeps",
             "etc/shadow* etc/gshadow* etc/security/opasswd* etc/master.passwd"),
    NameRule("a private SSH key", f"ssh-keygen(1); {_GITROB}",
             "id_rsa* id_dsa* id_ecdsa* id_ed25519* id_xmss* *_rsa *_dsa *_ed25519 *_ecdsa "
             "ssh_host_*_key *.ppk .ssh/*"),
    NameRule("a private key or a key store",
             f"{_GITROB}; gitleaks, config/gitleaks.toml, pkcs12-file; keytool(1); kinit(1)",
             "*.key *.keypair *.pvk wallet.dat *.p12 *.pkcs12 *.pfx *.p8 *.jks *.jceks *.bks "
             "*.keystore *.keytab .gnupg/* secring.* krb5cc_* *.snk"),
    NameRule("a PEM file that contains more than public certificates", f"RFC 7468; {_GITROB}",
             "*.pem", _not_only_public),
    NameRule("a password store", f"{_GITROB}; keepass.info, File Formats",
             "*.kdb *.kdbx *.psafe3 *.agilekeychain *.opvault .password-store/* *.keychain "
             "*.keychain-db *.kwallet *.1pif *.1pux logins.json key4.db"),
    NameRule("logins and passwords for servers",
             f"netrc(5); git-credential-store(1); htpasswd(1); {_GITROB}",
             ".netrc *.netrc .netrc.* _netrc .authinfo .authinfo.gpg .git-credentials "
             "git/credentials .htpasswd .htpasswds .smbcredentials .cifs-credentials .vncpasswd "
             "*.ovpn *.rdp sftp-config.json .vscode/sftp.json .ftpconfig filezilla.xml "
             "recentservers.xml sitemanager.xml gh/hosts.yml hub/config .config/hub "
             "glab-cli/config.yml"),
    NameRule("cloud credentials",
             f"AWS CLI, Google Cloud CLI, Azure CLI, s3cmd and rclone manuals; {_GITROB}",
             ".aws/* aws/credentials .config/gcloud/* gcloud/legacy_credentials/* gcloud/*.db "
             ".azure/* .oci/* .s3cfg .s3cfg-* s3cfg .boto rclone.conf .rclone.conf .passwd-s3fs "
             "*credentials *credentials.json *credentials.csv *credentials.y*ml *credentials.toml "
             "*credentials.ini *credentials.txt *credentials.xml *credentials.cfg .credentials/* "
             "client_secret*.json gha-creds-*.json *firebase-adminsdk*.json local.settings.json "
             "*service-account*.json *service_account*.json *serviceaccount*.json *accesskeys.csv "
             "*.publishsettings openrc.sh *-openrc.sh clouds.yaml .databrickscfg .snowsql/config "
             ".bluemix/* doctl/config.yaml"),
    NameRule("credentials for a cluster or an image registry",
             "kubectl and docker-login manuals; containers-auth.json(5)",
             ".kube/* kubeconfig kubeconfig.* *.kubeconfig .docker/config.json .dockercfg "
             ".dockerconfigjson containers/auth.json .singularity/docker-config.json "
             ".apptainer/docker-config.json .singularity/remote.yaml .apptainer/remote.yaml"),
    NameRule("a token for a machine learning service",
             "manuals of huggingface_hub, wandb, Kaggle, Comet, ClearML, MLflow, Modal, Streamlit, "
             "cdsapi",
             ".huggingface/* huggingface/token huggingface/stored_tokens hf_token* .hf_token* "
             "wandb/settings kaggle.json .kaggle/* .comet.config .comet_config clearml.conf "
             ".mlflow/credentials .modal.toml .streamlit/secrets.toml .cdsapirc .renviron "
             ".sentryclirc jupyter_server_config.json jupyter_notebook_config.json .ecmwfapirc "
             ".openai .openai/*"),
    NameRule("a token for a package registry",
             "packaging.python.org, The .pypirc file; cargo, RubyGems, Composer and Maven manuals",
             ".pypirc pypoetry/auth.toml .cargo/credentials* .gem/credentials composer/auth.json "
             ".m2/settings.xml .m2/settings-security.xml anaconda_token"),
    NameRule("a token for a package registry", "docs.npmjs.com, npmrc; yarnpkg.com, yarnrc",
             ".npmrc .yarnrc .yarnrc.yml",
             re.compile(rb"_auth(?:Token)?\b|_password|npmAuth(?:Token|Ident)").search),
    NameRule("a password in an address",
             "pip, conda and git manuals; Yelp/detect-secrets, plugins/basic_auth.py",
             "pip.conf pip.ini .condarc condarc .gitmodules", re.compile(_LOGIN_IN_ADDRESS).search),
    NameRule("a token in git's configuration", "git-config(1), url and http.extraHeader; hub(1)",
             ".gitconfig .config/git/config", _GIT_TOKEN.search),
    NameRule("a Weights & Biases API key",
             "docs.wandb.ai, wandb login: the key is 40 hexadecimal digits",
             "*wandb*", re.compile(rb"\s*(?:local-)?[0-9a-f]{40}\s*").fullmatch),
    NameRule("Terraform's state or variables",
             f"{_TEMPLATES}, Terraform.gitignore; Terraform manual, Sensitive data in state",
             "*.tfstate *.tfstate.* *.tfvars *.tfvars.json .terraformrc terraform.rc "
             ".terraform.d/* .terraform/*"),
    NameRule("passwords of a database", f"PostgreSQL and MySQL manuals; {_GITROB}",
             ".pgpass config/database.yml pgpass.conf pgpass .my.cnf .mylogin.cnf "
             ".pg_service.conf .mongorc.js .dbshell .redisclirc .rediscli_history "
             ".clickhouse-client/* robomongo.json dbeaver-data-sources.xml"),
    NameRule("a key for a secret manager",
             "manuals of Vault, Ansible, age, SOPS, Doppler and Rails",
             ".vault-token .vault_pass* vault_pass*.txt .vault-pass* vault-password* "
             ".vault_password* sops/age/keys.txt *.agekey .doppler.yaml master.key"),
    NameRule("a file with the name of a secrets file",
             f"{_TEMPLATES}; Yelp/detect-secrets, docs/design.md",
             "secret.* secrets.* *.secret *.secrets .secret .secrets .secrets/* .secret/* "
             "secrets/* secret/* password passwords *[_-]secret.json *[_-]secrets.json "
             "*[._-]secrets.y*ml *[._-]secret.y*ml *[_-]secrets.toml password.* passwords.* "
             "passwd.txt *[_-]password.txt *[_-]passwords.txt token.txt token.json .token "
             "*[_-]token *[_-]token.txt *[_-]token.json auth_token* .auth_token* creds creds.* "
             ".creds *[_-]creds.* pass.txt *api[_-]key *api[_-]key.* *api[_-]keys.* *apikey "
             "*apikey.* *apikeys.* *.apikey *.token"),
    NameRule("a command history, which may show passwords", f"{_GITROB}; {_TEMPLATES}, Global",
             ".bash_history .zsh_history .sh_history .history .python_history .mysql_history "
             ".psql_history .sqlite_history .node_repl_history .rdb_history .viminfo"),
)  # fmt: skip
"""The rules; the first match counts."""

# Code named `secrets` is a module; `.env.example` lists the variables without values.
_HARMLESS = re.compile(
    r"(?:.*[._-])?(?:examples?|templates?|samples?|tmpl|tpl|dist|j2|jinja2?|schema|dummy)"
    r"(?:[._-].*)?|.*[.]defaults?"
)
_CODE = (
    ".py", ".pyi", ".pyx", ".pxd", ".typed",
    ".ipynb", ".md", ".rst", ".html", ".js", ".ts", ".c", ".h", ".cc", ".cpp", ".cu",
    ".hpp", ".go", ".rs", ".java", ".rb", ".jl", ".r", ".m", ".css", ".svg", ".png", ".jpg", ".pub",
)  # fmt: skip


# Names that editors and file managers give copies: vim, emacs, GNOME, macOS, Windows.
_COPY = re.compile(
    r"[.](?P<vim>.+)[.]sw[a-p]|[#](?P<emacs>.+)[#]|[.][#](?P<lock>.+)|(?P<tilde>.+?)(?:[.]~\d+)?~"
    r"|(?P<numbered>.+?) \(\d+\)(?P<a>[.][^.]*)?"
    r"|(?P<copied>.+?)(?: -)? (?:\(?(?:another )?copy(?: \d+)?\)?)(?P<b>[.][^.]*)?"
)
_SETTINGS = re.compile(
    r"\.?env[^/]*|[^.]+|\.[^.]+|.*\.(?:env|envrc|ya?ml|jsonc?|json5|ini|cfg|conf|config|toml"
    r"|properties|sh|bash|zsh|sbatch|slurm)"
)


def secret_name(path: str) -> NameRule | None:
    """Return the rule that matches the name of the file at `path`, or None.

    The names of public keys, templates like `.env.example` and source code do not indicate secrets.
    An editor's copy counts as its original.
    """
    lowered = path.lower()
    folder, name = posixpath.split(lowered)
    if copy := _COPY.fullmatch(name):
        original = "".join(filter(None, copy.groups()))
        if original.endswith(_CODE):
            return None
        return _rule_of(lowered) or _rule_of(posixpath.join(folder, original))
    return _rule_of(lowered)


def has_settings(path: str) -> bool:
    """Return whether `path` has the name of a settings file: dotenv, YAML, JSON, INI, shell.

    In such a file, a long word after `TOKEN=` is a value; in code, it is mostly a variable.
    Templates do not count.
    """
    name = posixpath.basename(path.lower())
    return _SETTINGS.fullmatch(name) is not None and _HARMLESS.fullmatch(name) is None


def _rule_of(lowered: str) -> NameRule | None:
    name = posixpath.basename(lowered)
    if not _may_match(lowered, name) or name.endswith(_CODE) or _HARMLESS.fullmatch(name):
        return None
    for names, ends, rule in _RULES:
        if names.match(name) or ends.match("/" + lowered):
            return rule
    return None


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    """Return the matcher for any of the shell patterns; without any, it never matches."""
    return re.compile("|".join(map(fnmatch.translate, patterns)) or r"(?!)")


_RULES = [
    (
        _any_of(one for one in rule.patterns.split() if "/" not in one),
        _any_of(f"*/{one}" for one in rule.patterns.split() if "/" in one),
        rule,
    )
    for rule in NAMES
]

# A project has thousands of files and few secrets, so three quick tests pass most names: each
# searches for the longest plain part of the patterns with a leading wildcard, or for the start of
# the others.
_ALL = [one for rule in NAMES for one in rule.patterns.split()]
_PARTS = [re.split(r"\*|\[[^]]*\]", one) for one in _ALL if "/" not in one]
_BEGINNINGS = tuple({parts[0] for parts in _PARTS if parts[0]})
_LONGEST = {(max(parts, key=len), parts[-1]) for parts in _PARTS if not parts[0]}
_ENDINGS = tuple({part for part, last in _LONGEST if part == last})
_MIDDLES = tuple({part for part, last in _LONGEST if part != last})
_TOPS = sorted({one.split("/")[0] for one in _ALL if "/" in one})
_FOLDERS = re.compile(f"/(?:{'|'.join(map(re.escape, _TOPS))})/")


def _may_match(path: str, name: str) -> bool:
    if name.startswith(_BEGINNINGS) or name.endswith(_ENDINGS):
        return True
    return any(part in name for part in _MIDDLES) or _FOLDERS.search("/" + path) is not None
