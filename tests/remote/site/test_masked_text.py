"""What a log quotes: no secret, and all that only sounds like one."""

import time

import pytest

from lumitui.remote.site.masked_text import masked

SHA = "3f2a9c1d8e7b6a5f4c3d2e1f0a9b8c7d6e5f4a3b"


@pytest.mark.parametrize(
    "line",
    [
        "password: Xk29", "{'pwd': 'Xk29'}", '{"token": "Xk29fjQpLm"}', "X-Api-Key: Xk29",
        "os.environ['DB_PASSWORD']='Xk29'", "passphrase => Xk29", "Authorization: Token Xk29",
        "authorization: Bearer Xk29fjQpLm", "https://bob:Xk29@host/x", "GET /x?a=1&sig=Xk29",
        "curl -s -u bob:Xk29 host", "sshpass -p Xk29 ssh host", "Cookie: session=Xk29; b=Xk29",
        # Tokens that only their first letters tell.
        "got hf_Xk29fjQpLm7Xk", "got ghp_Xk29fjQpLm7Xk", "got sk-Xk29fjQpLm7Xk",
        "got glpat-Xk29fjQpLm7Xk", "got dckr_pat_Xk29fjQpLm7Xk", "got api_org_Xk29fjQpLm7Xk",
        "got github_pat_Xk29fjQpLm7Xk",
        # Programs of databases and registries, as a shell traces them and as Python prints them.
        "mysql -u root -pXk29 -h db", "['mysql', '-pXk29']", "mariadb -p'Xk29'", "7z x -pXk29 a",
        "mongosh -u me -p Xk29 host", "redis-cli -a Xk29 ping", "docker login -u me -p Xk29 reg",
        "Command '['docker', 'login', '-p', 'Xk29']'",
        "echo Xk29 | docker login --password-stdin",
        "mysqladmin -u root password Xk29", "CREATE USER a IDENTIFIED BY 'Xk29'",
        "influx -token Xk29", "AZURE_STORAGE_KEY: Xk29==",
        "openssl rsa -passin pass:Xk29", "unzip -P Xk29 a.zip", "['--token', 'Xk29']",
        "curl -subob:Xk29 host", "['curl', '-u', 'bob:Xk29']", "requests.get(auth=('bob', 'Xk29'))",
        "setenv WANDB_API_KEY Xk29", "aws configure set aws_secret_access_key Xk29",
        # Files of settings, and what libraries print of them.
        "machine h login me password Xk29", "  password Xk29", "<password>Xk29</password>",
        "aws_secret_access_key = Xk29", "'SecretAccessKey': 'Xk29'", "SMTP_PASS: Xk29",
        "REDIS_AUTH=Xk29", r'{\"password\": \"Xk29\"}', "password => 'Xk29'", "password=b'Xk29'",
        "Config(api_key=SecretStr('Xk29'))", "os.environ.setdefault('HF_TOKEN', 'Xk29fjQpLm')",
        '{"auths": {"reg": {"auth": "Xk29fjQpLmdTpXk29ZmpR="}}}', "private_key: Xk29",
        '{"username": "bob", "key": "Xk29fjQpLm7Xk29fj"}', "Incorrect API key provided: Xk29.",
        "token Xk29fjQpLm7 is invalid", "postgresql://u:Xk29/f@Xk29@db/x", "GET /x?auth=Xk29",
        "https://Xk29fjQpLm7Xk29fjQpLm7@github.com/o/r", '"authorization": "Xk29"',
        'Authorization: Digest username="u", response="Xk29"', "'Cookie': 'a=Xk29'",
        "https://conda.anaconda.org/t/ab-Xk29fjQp/channel", "rclone --s3-secret-access-key Xk29",
        "- https://conda.anaconda.org/t/ab-Xk29fjQp", "[remote]\npass = Xk29\nuser = bob",
        "secret_access_key = Xk29", "  key_file_pass = Xk29", "password2 = Xk29",
        # rclone's options and remotes, anaconda, Google, and what a shell escapes.
        "rclone copy a b --sftp-pass Xk29", "RCLONE_CONFIG_LUMI_PASS=Xk29",
        "RCLONE_CONFIG_PASS=Xk29",
        "rclone ls :sftp,host=h,pass=Xk29:/x", "rclone ls :sftp,pass=Xk29,host=h:/x",
        "rclone ls \":webdav,url=x,pass='Xk29':\"", "rclone --crypt-password2 Xk29 ls c:",
        "anaconda login --username me --password Xk29", "anaconda -t ab-Xk29fjQp upload x",
        "conda install -c https://conda.anaconda.org/t/ab-Xk29fjQp/channel torch",
        "got ya" "29.a0AfH6SMXk29fjQpLm7Xk29", r"curl -H Authorization:\ Bearer\ Xk29fjQpLm host",
        r"curl -H Authorization:\ token\ Xk29", r"curl -H X-Api-Key:\ Xk29",
        "lftp -u me,Xk29 host",
        "curl -H $'Authorization: Bearer Xk29fjQpLm'", "KAGGLE_KEY=Xk29",
        "Client(key='Xk29fjQpLmXZ')",
        f"wandb login {'3f2aXk29'.lower() * 5}Xk29",
        "['wandb', 'login', '3f2a9c1d8e7b6a5f4c3dXk29']",
        "wandb login --host=https://w.example.org 3f2a9c1d8e7b6a5f4c3dXk29",
        "--kaggle-key Xk29fjQpLmXZ", "auth_key=Xk29", "--license-key Xk29-fjQp", "openai_key=Xk29",
        "smbclient //h/share -U me%Xk29", "['smbclient', '-U', 'me%Xk29']",
        "smbclient --user=dom/me%Xk29 //h/s", "rpcclient -U 'me%Xk29' h", "ssh-keygen -NXk29",
        "ssh-keygen -t rsa -N Xk29", "['ssh-keygen', '-q', '-N', 'Xk29']",
        "ssh-keygen -p -P Xk29-old -N 'Xk29 b' -f key", "ssh-keygen -p -N Xk29 -P Xk29",
        # A harmless name before what only a key looks like, and names that only resemble one.
        "--stop_token Xk29fjQpLm", "SORT_KEY=Xk29fjQpLm", "--text-key=Xk29fjQpLmXZ",
        "--resort_token Xk29", "--stop_password Xk29", "--token Xk29", "GROUP_TOKEN=Xk29",
        "HF_TOKEN_PATH=Xk29fjQpLm", f"STOP_TOKEN={'3f2aXk29'.lower() * 4} hf_Xk29fjQpLm7Xk",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\nXk29\n-----END OPENSSH PRIVATE KEY-----",
    ],
)  # fmt: skip
def test_no_secret_of_a_log_is_quoted(line: str) -> None:
    assert "Xk29" not in masked(line)


@pytest.mark.parametrize(
    "line",
    [
        "max_tokens: 4096", "tokens/s: 1234", "KeyError: 'password'", "PWD=/users/alice",
        "special_tokens: <pad>", "git@github.com:foo/bar.git", "pad_token_id: 50256",
        "num_tokens=4,096", "tokens=128k", "mask_token=[MASK]", "eos_token='</s>'",
        "tokens: 1.5T,",
        "key_padding_mask=None", "token_shift=True", "basic training", "cookie: disabled",
        "wandb.login(key=[your_api_key])", "the token classification_head is trained",
        "password authentication failed for user bob1", "docker run -p 8080:80 -u 1000:1000 img",
        "docker://registry:5000/img@sha256", "mysql -h db -P 3306 -u root", "login node uan01",
        "on login1: mkdir -p /scratch/x1", 'add_argument("--token", default=None)',
        "https://discuss.pytorch.org/t/nccl-error-2-7/1234",
        "https://forum.example/t/ddp-2-gpus/77/3",
        "https://conda.anaconda.org/t/<TOKEN>/channel", "https://example.org/t/data2024.tar/x",
        f"git checkout {SHA}", f"HEAD is now at {SHA} Fix", f"{SHA} refs/heads/main",
        f"revision={SHA}",
        f"snapshots/{SHA}/config.json", f"pip install git+ssh://git@github.com/a/b.git@{SHA}",
        "missing_keys=['a.b'], unexpected_keys=['head.weight', 'head.bias']",
        "keys=['loss', 'acc']",
        "files.sort(key=lambda x: x.name)", "max(xs, key=len)", "sorted(d, key=itemgetter(1))",
        "login to nid001234", "please login to uan01", "login as alice", "login shell started",
        "key=PRNGKey(42)", "rng key=[0 42]", "key=Array([0, 42], dtype=uint32)",
        "key=loss mode=min",
        "primary_key=id", "hotkey=ctrl+c", "key=train/shard-0001.tar", "--keys a b",
        "--sort-key=value",
        "{'key': 'layer_0001_attention_weights'}", "key_states=torch.Size([1, 8, 64])",
        "key_cache=float16", "tokens=tensor([1, 2])", "tokens: 4096/8192", "next token=▁the",
        "num_key_value_heads=8", "use_auth_token=True", "past_key_values=None", "sort_keys=True",
        "Last login: Mon Nov 3 from 10.0.0.1",
        "wandb: Use `wandb login --relogin` to force relogin",
        "wandb: ERROR api_key not configured (no-tty)", "HF_TOKEN is not set",
        "state_dict keys: 291",
        "Permission denied (publickey,password,keyboard-interactive).",
        "SSH_AUTH_SOCK=/tmp/ssh-x/agent",
        "(alice@lumi) Enter passphrase for key '/home/alice/.ssh/id_ed25519':",
        "next_token=50256",
        'size mismatch for tok_embeddings: shape torch.Size([32000, 4096])', "bos_token=<s>",
        "--pool_token cls", "--pool-token=cls", "--stop_token <end>", "--stop_token END",
        "SORT_KEY=loss", "SORT_KEY=val_loss_2", "IMAGE_KEY=jpg", "--eos_token eos", "text_key=text",
        "PAD_TOKEN=pad0", "{'mask_token': 'word2vec-mask'}", "MAX_TOKENS=a4096-tokens",
        "--label-key label", "CACHE_KEYS=a,b", "HF_TOKEN_PATH=.cache/token", "--dataset_key wmt19",
        "API_KEY_FILE=/users/me/key", "smbclient -U me //h/share", "smbclient -L h --user=me",
        'ssh-keygen -q -t rsa -N "" -f key', "ssh-keygen -N '' -C a@b", "['ssh-keygen', '-N', '']",
        "ssh-keygen -R host -f known_hosts",
        "rclone copy a b --transfers 4 --sftp-host h", "rclone ls :sftp,host=h,user=u:/x",
        'Missing key(s) in state_dict: "a.b"', "RuntimeError: KeyError: 'model.layers.0'",
        "NCCL INFO comm 0x55d rank 0 nranks 8 commId 0x3f2a9c1d8e7b6a5f - Init COMPLETE",
        "Epoch 3: 100% 10/10 [00:03<00:00, 3.2it/s, loss=1.2, v_num=3]", "query_key_value.weight",
        "the login shell at a@b ran no command", "Download on a login host first",
        "pass = 12", "pass=backward took 3 s", "    pass = None", "bypass = 12",
        "backward pass: 12.5ms", "PASS: test_1", "tokenizer=gpt2", f"sha256: {'9f86d081' * 8}",
    ],
)  # fmt: skip
def test_what_only_sounds_like_a_secret_is_quoted(line: str) -> None:
    assert masked(line) == line


@pytest.mark.parametrize(
    "line",
    ["wandb login --host https://w.example.org {}", "['wandb', 'login', '--host', 'h', '{}']",
     "wandb: Paste an API key from your profile and hit enter: {}", "wandb: {}"],
)  # fmt: skip
def test_forty_digits_after_the_name_of_their_service_are_a_key_and_a_commit_is_none(
    line: str,
) -> None:
    assert SHA not in masked(line.format(SHA))
    for commit in (f"wandb: Git commit: {SHA}", f"pip install github.com/wandb/wandb@{SHA}"):
        assert masked(commit) == commit


def test_a_long_line_takes_no_seconds() -> None:
    """The time grows with the length, and a megabyte takes seconds, not minutes."""
    for part in (
        " ", "=", "\\ ", "a-b-", "http://a", "://", "curl -u ", "docker login ", "mysql ",
        "ssh-keygen ", "ssh-keygen -N", "smbclient -U ", "stop_token=", "_file=", "SORT_KEY=a ",
        "wandb ", "api key ",
        "echo a|", "eyJ", "x.eyJ", "sk-", "wandb", "key", "login -a ", "login,-a=", "cookie:",
        "</token>", "--", ":s,pass=", "-----BEGIN PRIVATE KEY-----",
    ):  # fmt: skip
        began = time.process_time()
        masked(f"{(part * 1_000_000)[:1_000_000]} | --password")
        assert time.process_time() - began < 6, part
