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
.cargo/credentials.toml .bash_history .vault_pass.txt master.key vpn.ovpn
"""
SECRET_NAMES = _SECRET_NAMES.split()

_HARMLESS_NAMES = """
.env.example .env.template .env.sample .env.dist example.env .env.defaults id_rsa.pub
id_ed25519.pub .ssh/id_rsa.pub secrets.py token.py credentials.py password.py tokens.txt
tokenizer.json tokenizer_config.json special_tokens_map.json added_tokens.json config.json
settings.json environment.yml environment wandb/run-1/log.txt train.py README.md keys.py
secrets.example.yaml credentials.json.template terraform.tf variables.tf docker/config.json
gcloud/deploy.sh id_mapping.json kubernetes.md passwords.md data/token_counts.json monkey.txt
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
    Key("Azure", "Account" + "Key=" + _characters("z", 86, _ALL) + "=="),
)

NO_KEYS = (
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
