"""Files that hold secrets and files that only look like it, all of them made up."""

import hashlib
from dataclasses import dataclass

_SECRET_NAMES = """
.env .env.local .env.production .env_dev prod.env .envrc id_rsa id_dsa id_ecdsa id_ed25519
id_ed25519_sk id_rsa_github id_rsa.old deploy_rsa .ssh/config .ssh/id_work key.ppk .netrc _netrc
.git-credentials .config/git/credentials credentials credentials.json aws-credentials.json
application_default_credentials.json .aws/credentials .aws/config .kube/config kubeconfig
.config/gcloud/access_tokens.db .config/gcloud/configurations/config_default .azure/msal.json
.huggingface/token .cache/huggingface/token hf_token hf_token.txt .pypirc .docker/config.json
.dockercfg server.key store.p12 store.pfx vault.kdbx store.jks app.keystore user.keytab
terraform.tfstate terraform.tfstate.backup prod.tfvars prod.auto.tfvars.json .terraformrc .pgpass
.my.cnf wandb/settings kaggle.json .kaggle/kaggle.json service-account.json
my_service_account_key.json client_secret_12.json .vault-token secrets.yaml secrets.json
secrets.toml .streamlit/secrets.toml secret.txt .htpasswd .s3cfg .boto rclone.conf .databrickscfg
.gnupg/private-keys-v1.d/a.key api_key.txt openai_api_key apikey.json password.txt passwords.csv
token.txt token.json .token auth_token .cdsapirc .comet.config clearml.conf .modal.toml
.config/gh/hosts.yml creds.yaml aws_creds.json access_token github_token
.vscode/sftp.json .password-store/a.gpg config/database.yml
.env~ ..env.swp .s3cfg-work secrets/prod secrets/a/b.json .secret/x secret/x.txt .secrets/a/b
password .terraform/terraform.d/x .openai id_rsa~ #credentials.json# .#token.txt .env.~1~
.cargo/credentials.toml .bash_history .vault_pass.txt master.key vpn.ovpn
"""
SECRET_NAMES = [
    *_SECRET_NAMES.split(),
    ".env copy",
    ".env copy 2",
    "token copy.txt",
    "id_rsa (1)",
    ".env (copy)",
    "kaggle - Copy.json",
]

_HARMLESS_NAMES = """
.env.example .env.template .env.sample .env.dist example.env .env.defaults id_rsa.pub
id_ed25519.pub .ssh/id_rsa.pub secrets.py token.py credentials.py password.py tokens.txt
tokenizer.json tokenizer_config.json special_tokens_map.json added_tokens.json config.json
settings.json environment.yml environment wandb/run-1/log.txt train.py README.md keys.py
secrets.example.yaml credentials.json.template terraform.tf variables.tf docker/config.json
gcloud/deploy.sh id_mapping.json kubernetes.md passwords.md data/token_counts.json monkey.txt
secrets/__init__.py secrets/README.md secrets.py~ .train.py.swp secrets/py.typed
password_reset.py
terraform/main.tf wandb.yaml wandb-key.txt env .gitconfig
keyboard.toml model.safetensors ca.crt hub/config.yaml .npmrc pip.conf .gitmodules
"""
HARMLESS_NAMES = _HARMLESS_NAMES.split()


def _characters(seed: str, length: int, alphabet: str) -> str:
    """Return `length` characters that look as if a machine had made them."""
    text, number = "", 0
    while len(text) < length:
        digest = hashlib.sha256(f"{seed}{number}".encode()).digest()
        text += "".join(alphabet[byte % len(alphabet)] for byte in digest)
        number += 1
    return text[:length]


_UPPER, _DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"
_HEX = "0123456789abcdef"
_ALL = _UPPER + _UPPER.lower() + _DIGITS
_LINE = _characters("pem", 64, _ALL)


@dataclass(frozen=True)
class Key:
    """A made-up key, with what the preview calls it."""

    what: str
    text: str


# Put together here, so that no scanner takes this file for one with keys.
KEYS = (
    Key("private key", f"-----BEGIN {'PRIVATE'} KEY-----\n{_LINE}\n-----END {'PRIVATE'} KEY-----"),
    Key("private key", f"-----BEGIN RSA {'PRIVATE'} KEY-----\nProc-Type: 4,ENCRYPTED\n\n{_LINE}\n"),
    Key("private key", f"-----BEGIN PGP {'PRIVATE'} KEY BLOCK-----\n\n{_LINE}\n"),
    Key("private key", f'"private_key": "-----BEGIN {"PRIVATE"} KEY-----\\n{_LINE}\\n"'),
    Key("AWS", "AKI" + "A" + _characters("aws", 16, _UPPER)),
    Key("AWS", "AWS_SECRET_" + 'ACCESS_KEY="' + _characters("s", 40, _ALL) + '"'),
    Key("AWS", "aws_secret_" + "access_key = " + _characters("t", 40, _ALL)),
    Key("Google", "AIz" + "a" + _characters("g", 35, _ALL)),
    Key("Google", "ya2" + "9." + _characters("y", 60, _ALL + "_-")),
    Key("GitHub", "gh" + "p_" + _characters("gh", 36, _ALL)),
    Key("GitHub", "gh" + "s_" + _characters("gh", 36, _ALL)),
    Key("GitHub", "github_" + "pat_" + _characters("gf", 82, _ALL)),
    Key("GitLab", "glp" + "at-" + _characters("gl", 20, _ALL)),
    Key("Hugging Face", "hf" + "_" + _characters("hf", 34, _UPPER.lower())),
    Key(
        "OpenAI", "sk" + "-" + _characters("o", 20, _ALL) + "T3BlbkFJ" + _characters("p", 20, _ALL)
    ),
    Key("OpenAI", "sk" + "-proj-" + _characters("q", 74, _ALL + "_-")),
    Key("Anthropic", "sk" + "-ant-api03-" + _characters("r", 93, _ALL + "_-") + "AA"),
    Key("Weights", "WANDB_API" + "_KEY=" + _characters("w", 40, "0123456789abcdef")),
    Key("Weights", "wandb.login(key='" + _characters("w", 40, "0123456789abcdef") + "')"),
    Key("Slack", "xox" + "b-" + _characters("1", 12, _DIGITS) + "-" + _characters("x", 24, _ALL)),
    Key("Vault", "hv" + "s." + _characters("v", 95, _ALL)),
    Key("age", "AGE-SECRET-" + "KEY-1" + _characters("a", 58, _UPPER)),
    Key("JWT", "ey" + "J" + ".eyJ".join(_characters(s, 30, _ALL) for s in "jk") + "." + _LINE[:43]),
    Key("AWS", "aws_secret_" + 'access_key = "' + _characters("u", 40, _ALL) + '"'),
    Key("AWS", '"Secret' + 'AccessKey": "' + _characters("v", 40, _ALL) + '"'),
    Key("npm", "npm" + "_" + _characters("n", 36, _ALL)),
    Key("PyPI", "pypi-" + "AgEIcHlwaS5vcmc" + _characters("py", 70, _ALL + "_-")),
    Key("SendGrid", "SG" + "." + _characters("s", 22, _ALL) + "." + _characters("sg", 43, _ALL)),
    Key("Weights", "wandb" + "_v1_" + _characters("w1", 77, _ALL)),
    Key("Weights", "wandb:\n  entity: me\n  " + "key: " + _characters("w2", 40, _HEX)),
    Key("Weights", "api" + '_key": "' + _characters("w3", 40, _HEX) + '"'),
    Key("Weights", "WANDB" + "_KEY=" + _characters("w4", 40, _HEX)),
    Key("Weights", "machine api.wandb.ai login user password " + _characters("w5", 40, _HEX)),
    Key("Groq", "gsk" + "_" + _characters("gr", 52, _ALL)),
    Key("Replicate", "r8" + "_" + _characters("r8", 37, _ALL)),
    Key("DigitalOcean", "dop" + "_v1_" + _characters("do", 64, _HEX)),
    Key("Databricks", "dap" + "i" + _characters("db", 32, _HEX) + "-2"),
    Key(
        "Discord",
        "https://discord.com/api/web" + f"hooks/{'1234567890' * 2}"[:-2] + "/" + _LINE + "abcd",
    ),
    Key("Telegram", "123456789" + ":AA" + _characters("tg", 33, _ALL + "_-")),
    Key("database", "postgresql+psycopg2://me:" + _characters("pg", 14, _ALL) + "@db.host/x"),
    Key("database", "mongodb+srv://me:" + "hunter%402pass" + "@cluster0.a.net"),
    Key("database", "redis://:" + _characters("rd", 20, _ALL) + "@cache:6379/0"),
    Key("Azure", "Account" + "Key=" + _characters("z", 86, _ALL) + "=="),
)

SETTINGS = (
    "MY_" + "API_KEY=" + _characters("e1", 24, _ALL),
    "export MY_SERVICE_" + "TOKEN='" + _characters("e2", 32, _ALL) + "'",
    "DB_" + "PASSWORD=" + "c0rrect-h0rse!",
    "db:\n  " + "password: " + _characters("e3", 16, _ALL),
    '{"service_' + 'token": "' + _characters("e4", 32, _HEX) + '"}',
    "openai_" + "api_key = " + _characters("e5", 32, _ALL),
)
"""What counts in files of settings, and not in code."""

NO_SETTINGS = (
    "API_KEY=${MY_LONG_API_KEY_0001}",
    "API_KEY=$(pass show my/key/number/1)",
    "HF_TOKEN=",
    "api_key: !ENV ${X}",
    "TOKEN=/run/secrets/my_token_1234",
    '"mask_token": "reserved_special_token_250"',
    '"eos_token": "<|reserved_special_token_250|>"',
    "max_token: 1234567890123456789012",
    "PASSWORD=your-password-here-1",
    "token: {{ lookup('env', 'TOKEN1234567890') }}",
    "api_key = os.environ['OPENAI_API_KEY_1']",
    "db_password: changeme",
)
"""What no secret is, even in files of settings."""

NO_KEYS = (
    "postgres://user:password@localhost:5432/db",
    "postgresql://user:pass@db/x redis://:${REDIS_PASSWORD}@cache mysql://u:%s@h",
    "wandb @ git+https://github.com/wandb/wandb@" + _characters("wc", 40, _HEX),
    "wandb==0.19.1\ncommit: " + _characters("wd", 40, _HEX),
    "https://discord.com/api/web" + "hooks/ID/TOKEN and SG" + ".something.else r8_model",
    f'if line.startswith("-----BEGIN RSA {"PRIVATE"} KEY-----"):\n    return load(line)\n',
    "AKI" + "AIOSFODNN7EXAMPLE",
    "hf" + "_" + "x" * 34,
    "export HF_TOKEN=hf" + "_" + "your" + "a1" * 15,
    "gh" + "p_" + "*" * 36,
    "the mask-" + _characters("m", 40, _ALL) + " and task-" + _characters("m", 40, _ALL),
    "sk-estimator-doc-link sk-toggleable__label-arrow sk-container-id-is-long-but-has-no-number",
    "commit " + _characters("c", 40, "0123456789abcdef"),
    "sha256-" + _characters("i", 44, _ALL),
    "DistributedDataParallelCommunicationHookType_with_a_long_name",
    f"-----BEGIN CERTIFICATE-----\n{_LINE}\n-----END CERTIFICATE-----\n",
    "os.environ['WANDB_API_KEY'] = key; AWS_SECRET_ACCESS_KEY=${AWS_SECRET_ACCESS_KEY}",
)
