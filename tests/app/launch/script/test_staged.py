"""Words that name something staged: exactly the names expand in the shell, and nothing else."""

import subprocess

from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.launch.program_call import link_target, named_in, word

_PIECES = st.sampled_from(
    [
        "$STAGE_DATA",
        "${STAGE_DATA}",
        "$STAGE_OTHER",
        "$HOME",
        "'",
        '"',
        "`x`",
        "$(x)",
        "\\",
        " ",
        "a",
    ]
)


@given(st.lists(_PIECES, max_size=8))
def test_only_what_is_staged_expands(pieces: list[str]) -> None:
    text = "".join(pieces)
    shell = ["sh", "-c", f"STAGE_DATA='/a b'; printf '%s|' {word(text, ['DATA'])}"]
    said = subprocess.run(shell, capture_output=True, text=True, check=True).stdout
    expected = "".join("/a b" if "STAGE_DATA" in piece else piece for piece in pieces)
    assert said == f"{expected}|"


def test_names_and_links() -> None:
    assert list(named_in("--a=$STAGE_DATA:${STAGE_X} $STAGEX")) == ["DATA", "X"]
    assert (
        link_target("data", "D") == "../stage/D"
        and link_target("a/b/c/", "D") == "../../../stage/D"
    )
