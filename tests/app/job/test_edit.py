"""An edit of a job file changes one value: comments, order and all other lines stay."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumitui.app.job import examples
from lumitui.app.job.edit import Value, set_key
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.reading.yaml_document import Document
from lumitui.remote.site.sites import BUILT_IN

JOB = """# what it is for
name: training   # a name
site: lumi

partition: "small-g"     # whole nodes: standard-g
# as many as fit
nodes: 1                 # grows
time: "01:00:00"         # limit
script: train.py
args:
  # the rate
  - --lr         # found by hand
  - 1e-3         # small
  - "--note"
  - 'it''s'
env: {NCCL_DEBUG: INFO}  # noise
container:
  generation: laif       # the new one
  # binds: [/data]
fetch: [
  a/*.pt,  # weights
  b.txt,   # words
]
# the end
"""


def data(text: str) -> dict[str, object]:
    return Document(text, "job.yaml", plain=True).data


def comments(text: str) -> list[str]:
    return re.findall(r"#.*", text)


@pytest.mark.parametrize(
    ("place", "value", "line"),
    [
        (("nodes",), "16", "nodes: 16                # grows"),
        (("partition",), "standard-g", 'partition: "standard-g"  # whole nodes: standard-g'),
        (("time",), "1-00:00:00", 'time: "1-00:00:00"       # limit'),
        (("env", "NCCL_DEBUG"), "WARN", "env: {NCCL_DEBUG: WARN}  # noise"),
        (("env", "OMP"), "1", "env: {NCCL_DEBUG: INFO, OMP: 1}  # noise"),
        (("container", "image"), "/a b.sif", "  image: /a b.sif"),
        (("account",), "project_462000001", "account: project_462000001"),
        (("grid",), {"--lr": ["1e-3", "3e-4"]}, "grid: {--lr: [1e-3, 3e-4]}"),
        (("scale", "batch", "arg"), "--b", "scale: {batch: {arg: --b}}"),
        (("name",), "ja: # nein", 'name: "ja: # nein" # a name'),
    ],
)
def test_one_line_changes_and_its_comment_stays_in_its_column(
    place: tuple[str, ...], value: Value, line: str
) -> None:
    after = set_key(JOB, place, value)
    assert line in after.split("\n")
    assert comments(after) == comments(JOB) or "# nein" in line
    same = [other for other in after.split("\n") if other in JOB.split("\n")]
    assert len(same) >= len(JOB.split("\n")) - 1


def test_a_key_comes_where_the_documentation_has_it_and_goes_again() -> None:
    after = set_key(JOB, ("memory",), "60G")
    assert after.index("nodes: 1") < after.index("memory: 60G") < after.index("time:")
    assert set_key(after, ("memory",), None) == JOB
    assert "container" not in set_key(JOB, ("container", "generation"), None).replace("# b", "")


def test_items_keep_their_comments() -> None:
    after = set_key(JOB, ("args",), ["--lr", "3e-4", "--note", "it's", "--epochs", "9"])
    assert "  - 3e-4         # small\n" in after and "  - --lr         # found by hand\n" in after
    assert "  - 'it''s'\n  - --epochs\n  - 9\n" in after
    assert comments(after) == comments(JOB)
    fewer = set_key(JOB, ("fetch",), ["b.txt"])
    assert "# words" in fewer and data(fewer)["fetch"] == ["b.txt"]


def test_what_cannot_be_edited_is_refused_and_says_where_to_do_it() -> None:
    with pytest.raises(InputError, match="YAML"):
        set_key("name: [", ("name",), "x")
    assert set_key("", ("name",), "x") == "name: x\n"
    assert set_key("# only this", ("name",), "x") == "# only this\nname: x\n"
    assert set_key("{name: x}\n", ("nodes",), "2") == "{name: x, nodes: 2}\n"
    assert set_key("a: 1\r\nnodes: 2\r\n", ("nodes",), "3") == "a: 1\r\nnodes: 3\r\n"
    assert set_key("fetch:\r\n- a\r\n", ("fetch",), ["b", "a", "c"]) == (
        "fetch:\r\n- b\r\n- a\r\n- c\r\n"
    )
    assert set_key("nodes: 2\r\na: 1\r\n", ("time",), "x") == "nodes: 2\r\ntime: x\r\na: 1\r\n"


@pytest.mark.parametrize(
    "rest",
    ["a: 1", "\n\na: 1\n", "env:\n     A: 1\n", "args:\n- a\nfetch:\n    - b\n", "a: x\n  y\n",
     "a: [b,\n   c]\n", "a :  x\n", "a: |\n  x\n\n", "a: 1\r\n\r\nb: 2\r\n"],
)  # fmt: skip
def test_how_the_rest_is_written_does_not_matter(rest: str) -> None:
    assert set_key(f"---\nnodes:   1\n{rest}", ("nodes",), "2") == f"---\nnodes:   2\n{rest}"


@pytest.mark.parametrize(
    "path",
    sorted([*BUILT_IN.glob("*.yaml"), *(BUILT_IN.parent / "examples").rglob("*.yaml")]),
    ids=lambda path: f"{path.parent.name}-{path.stem}",
)
def test_an_edit_of_a_template_changes_one_line(path: Path) -> None:
    text = path.read_bytes().decode()
    key = "title" if path.parent == BUILT_IN else "name"
    rows = zip(text.split("\n"), set_key(text, (key,), "new").split("\n"), strict=True)
    (changed,) = [old for old, new in rows if old != new]
    assert changed.startswith(f"{key}:")


WORDS = st.one_of(
    st.sampled_from(["--lr", "1e-3", "yes", "null", "~", "0x10", "010", "1:30", "- x", "#", ": "]),
    st.text(
        st.characters(exclude_categories=("Cc", "Cs"), exclude_characters="\x85\u2028\u2029"),
        max_size=12,
    ),
)
LISTS = st.lists(WORDS, max_size=5)
KEYS = ("name", "site", "nodes", "time", "script", "args", "env", "fetch")


@st.composite
def job_files(draw: st.DrawFn) -> str:
    """Return a job file as people write them: any order, comments, lists in both forms."""
    lines = []
    for key in draw(st.permutations(KEYS)):
        if draw(st.booleans()):
            lines.append(draw(st.sampled_from(["", "# above", "# two"])))
        note = draw(st.sampled_from(["", "  # behind", "   # it's: [not] {yaml}"]))
        if key == "env":
            shape = draw(st.sampled_from(["env: {A: 1, B: x}#", "env:#\n  A: 1#\n  # in\n  B: x"]))
        elif key in ("args", "fetch"):
            shape = draw(
                st.sampled_from(
                    [f"{key}: [a, 'b c']#", f"{key}:#\n- a#\n  # in\n- 'b c'#", f"{key}: []#",
                     f"{key}:\n    - a\n    - 'b c'#", f"{key}: [\n  a,#\n  'b c'#\n  ]"]
                )
            )  # fmt: skip
        else:
            shape = f"{key}: " + draw(st.sampled_from(["x#", '"x y"#', "'x'#", "|\n  x\n  y", "#"]))
        lines.append(re.sub("#(?=\n|$)", lambda _: note, shape))  # noqa: B023 - used at once
    return "\n".join(lines) + draw(st.sampled_from(["", "\n", "\n# the end\n"]))


@settings(max_examples=50)
@given(job_files(), st.sampled_from(KEYS), WORDS, LISTS, st.booleans())
def test_any_edit_of_any_file_changes_that_value_alone(
    text: str, key: str, word: str, words: list[str], inside: bool
) -> None:
    value: Value = words if key in ("args", "fetch") else {"A": word} if key == "env" else word
    place: tuple[str, ...] = (key,)
    if key == "env" and inside:
        place, value = ("env", "A"), word
    before = data(text)
    try:
        after = set_key(text, place, value)
    except InputError:
        pytest.fail(f"refused {value!r} in\n{text}")
    wanted = before | {key: value}
    if key == "env" and inside:
        assert isinstance(before["env"], dict)
        wanted = before | {key: before["env"] | {"A": word}}
    assert data(after) == wanted
    kept = [line for line in text.split("\n") if line.lstrip().startswith("#")]
    assert [line for line in after.split("\n") if line in kept] == kept
    for other in KEYS:
        if other != key:
            start = next(at for at, line in enumerate(text.split("\n")) if line.startswith(other))
            assert text.split("\n")[start] in after.split("\n")


@settings(max_examples=20)
@given(st.sampled_from(list(examples.examples())), st.sampled_from(KEYS), WORDS)
def test_the_examples_keep_every_comment(name: str, key: str, word: str) -> None:
    text = examples.examples()[name].text
    after = set_key(text, (key,), word)
    left = comments(after)
    assert all(any(comment in other for other in left) for comment in comments(text))


@pytest.mark.parametrize("form", ["node:\n  gpu_numa: [{}]  # the kernel's\n", "{}"])
@settings(max_examples=100, deadline=None)
@given(
    before=st.lists(st.sampled_from("0123"), min_size=1, max_size=5),
    after=st.lists(st.sampled_from("0123"), max_size=5),
)
def test_any_list_becomes_any_other_where_items_are_alike(
    form: str, before: list[str], after: list[str]
) -> None:
    if form == "{}":
        rows = "".join(f"    - {word}  # item {at}\n" for at, word in enumerate(before))
        text = f"node:\n  gpu_numa:\n{rows}"
    else:
        text = form.format(", ".join(before))
    found = set_key(text, ("node", "gpu_numa"), after)
    assert data(found) == {"node": {"gpu_numa": after}}
    if form != "{}":
        assert comments(found) == comments(text)


def test_domains_measured_anew_replace_the_old_ones() -> None:
    text = "node:\n  gpu_numa: [1, 0, 3, 2]  # measured\n"
    assert set_key(text, ("node", "gpu_numa"), ("0", "0", "0", "0")) == (
        "node:\n  gpu_numa: [0, 0, 0, 0]  # measured\n"
    )
