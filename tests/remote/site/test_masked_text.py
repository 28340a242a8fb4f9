"""What a log quotes: no secret, and all that only sounds like one."""

import pytest

from lumitui.remote.site.masked_text import masked


@pytest.mark.parametrize(
    "line",
    [
        "password: Xk29", "{'pwd': 'Xk29'}", '{"token": "Xk29fjQpLm"}', "X-Api-Key: Xk29",
        "os.environ['DB_PASSWORD']='Xk29'", "passphrase => Xk29", "Authorization: Token Xk29",
        "authorization: Bearer Xk29fjQpLm", "https://bob:Xk29@host/x", "GET /x?a=1&sig=Xk29",
        "curl -s -u bob:Xk29 host", "sshpass -p Xk29 ssh host", "Cookie: session=Xk29; b=Xk29",
    ],
)  # fmt: skip
def test_no_secret_of_a_log_is_quoted(line: str) -> None:
    assert "Xk29" not in masked(line)


@pytest.mark.parametrize(
    "line",
    [
        "max_tokens: 4096", "tokens/s: 1234", "KeyError: 'password'", "PWD=/users/alice",
        "special_tokens: <pad>", "git@github.com:foo/bar.git", "pad_token_id: 50256",
    ],
)  # fmt: skip
def test_what_only_sounds_like_a_secret_is_quoted(line: str) -> None:
    assert masked(line) == line
