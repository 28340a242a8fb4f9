"""YAML documents: the scalars of YAML 1.2, and what is refused with its line."""

import math
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lumitui.remote.site.errors import InputError
from lumitui.remote.site.reading import yaml_document
from lumitui.remote.site.reading.yaml_document import Document, read_document


def value(text: str, *, plain: bool = False) -> object:
    """Return what `text` means as a value."""
    return Document(f"key: {text}\n", "job.yaml", plain=plain).data["key"]


def refusal(text: str, *, plain: bool = False) -> InputError:
    """Return the error that a document of `text` ends with."""
    with pytest.raises(InputError) as caught:
        Document(text, "job.yaml", plain=plain)
    return caught.value


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("10:00", "10:00"),
        ("01:00:00", "01:00:00"),
        ("2-00:00:00", "2-00:00:00"),
        ("190:20:30", "190:20:30"),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("off", "off"),
        ("y", "y"),
        ("010", "010"),
        ("0o17", "0o17"),
        ("0x1f", "0x1f"),
        ("1_000", "1_000"),
        ("2026-11-21", "2026-11-21"),
        ("<<", "<<"),
        ("=", "="),
        ("1e", "1e"),
        (".", "."),
        ("60G", "60G"),
        ("1-7,9", "1-7,9"),
        ('"10"', "10"),
        ("'true'", "true"),
        ("10", 10),
        ("-3", -3),
        ("+3", 3),
        ("0", 0),
        ("1e-3", 0.001),
        ("1E6", 1e6),
        ("1.5", 1.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("[10:00, 1e-3, yes]", ["10:00", 0.001, "yes"]),
        ("{1: x, a: 010}", {1: "x", "a": "010"}),
    ],
)
def test_scalars_are_those_of_yaml_1_2(text: str, meant: object) -> None:
    read = value(text)
    assert read == meant
    assert type(read) is type(meant)


@pytest.mark.parametrize(
    "text", ["10", "1e-3", "true", "010", "10:00", "yes", "1.50", "2026-11-21"]
)
def test_plain_documents_keep_a_scalar_as_it_was_written(text: str) -> None:
    assert value(text, plain=True) == text


def test_plain_documents_know_null() -> None:
    assert value("null", plain=True) is None
    assert value('"null"', plain=True) == "null"


@given(st.integers())
def test_whole_numbers_are_read(number: int) -> None:
    assert value(str(number)) == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_read(number: float) -> None:
    read = value(repr(number))
    assert isinstance(read, float)
    assert math.isclose(read, number, rel_tol=1e-15)


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn", "Co"])))
def test_quoted_text_stays_as_it_is(text: str) -> None:
    quoted = "'" + text.replace("'", "''") + "'"
    if "\u2028" not in text and "\u2029" not in text:  # line breaks, which fold
        assert value(quoted) == text


@given(st.text(max_size=200))
def test_any_text_is_a_document_or_an_error_for_a_person(text: str) -> None:
    try:
        assert isinstance(Document(text, "job.yaml").data, dict)
    except InputError as error:
        assert "job.yaml" in error.message
        assert error.hint


def test_an_empty_document_has_no_keys() -> None:
    assert Document("", "job.yaml").data == {}
    assert Document("# only a comment\n", "job.yaml").data == {}


def test_a_byte_order_mark_and_dos_line_ends_are_read(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_bytes("\ufeffname: a\r\nnodes: 2\r\n".encode())
    assert read_document(path).data == {"name": "a", "nodes": 2}


def test_a_file_that_stays_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("node: {cores: 8}\n")
    first = read_document(path)
    first.below = first
    node = first.data["node"]
    assert isinstance(node, dict)
    node.clear()
    with monkeypatch.context() as patched:
        patched.setattr(yaml_document, "_Loader", None)
        again = read_document(path)
    assert again.data == {"node": {"cores": 8}} and again.below is None
    assert again.where(("node", "cores")) == f"{path}:1"
    path.write_text("node: {cores: 9}\n")
    assert read_document(path).data == {"node": {"cores": 9}}


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("name: a\nnodes: 1\nname: b\n", 3, "'name' appears twice"),
        ("env:\n  A: 1\n  A: 2\n", 3, "'A' appears twice"),
        ("env:\n\tA: 1\n", 2, "a tab before the text"),
        ("name: a\n  nodes: 1\n", 2, "not valid YAML (a key or list item is not allowed here)"),
        ("name: a\nnodes:1\nx: 2\n", 2, "not valid YAML (a key needs a colon and a space)"),
        ("a:\n  b: 1\n c: 2\n", 3, "not valid YAML (the indentation matches no line above)"),
        ("name: a\nx: 'a'b'\n", 2, "not valid YAML (text follows a closing quote or bracket)"),
        ("name: a\n\tx: 1\n", 2, "not valid YAML (a tab before the text)"),
        ("name: a\nx: @b\n", 2, "not valid YAML (a value cannot start with @)"),
        ('x: "\\q"\n', 1, "not valid YAML (\\q in double quotes has no meaning)"),
        ("name: a\n}\n", 2, "not valid YAML (unexpected })"),
        ("args: [a, b\nname: c\n", 1, "not valid YAML (the [ has no closing ])"),
        ("name: c\nenv: {A: [b\nargs: []\nsite: d\n", 2, "(the [ has no closing ])"),
        ("name: c\nargs: [a}\nsite: d\n", 2, "but got '}'"),
        ('name: "a\nsite: b\n', 1, '(the " has no closing ")'),
        ("a: &x [1]\nb: *x\n", 2, "alias *x"),
        ("a: &x\n  b: *x\n", 2, "alias *x"),
        ("a: 1\nb: !!bool x\n", 2, "tag"),
        ("a: 1\nb: !!timestamp x\n", 2, "tag"),
        ("a: 1\nb: !!python/object/apply:os.system [true]\n", 2, "tag"),
        ("a: 1\n? [b]\n: c\n", 2, "plain text"),
        ("a: 1\n---\nb: 2\n", 2, "another document"),
        ("a: 1\nb: x\x00y\n", 2, "control character"),
        ("a: 1\nb: x\x1b[31m\n", 2, "control character"),
        ('a: 1\nb: "x\\0y"\n', 2, "control character"),
        ('a: 1\nb: "\\e[31m"\n', 2, "control character"),
        ('a: 1\nb: "\\ud800"\n', 2, "control character"),
        ('a: 1\n"b\\x07": 2\n', 2, "control character"),
        ("a: 1\nb: " + "[" * 60 + "]" * 60 + "\n", 2, "levels deep"),
        ("a: 1\nb: " + "[" * 90_000, 2, "levels deep"),
        ("a: 1\nb: " + "{x: " * 60 + "}" * 60 + "\n", 2, "levels deep"),
    ],
)
def test_what_cannot_be_read_is_shown_with_its_line(
    text: str, line: int, words: str, plain: bool
) -> None:
    error = refusal(text, plain=plain)
    assert error.message.startswith(f"job.yaml, line {line}: ")
    assert words in error.message
    assert error.hint


def test_a_number_too_long_to_be_one_is_refused() -> None:
    assert "job.yaml" in refusal(f"nodes: {'9' * 5000}\n").message


@pytest.mark.parametrize("text", ["- a\n- b\n", "just words\n", "10\n"])
def test_what_has_no_keys_is_refused(text: str) -> None:
    assert "`key: value`" in refusal(text).message


def test_aliases_that_stand_for_a_billion_values_are_refused_before_they_grow() -> None:
    lines = ["a0: &a0 [lol, lol]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    assert "line 2: the alias *a0" in refusal("\n".join(lines)).message


def test_nesting_that_is_allowed_is_read() -> None:
    assert value("[" * 30 + "]" * 30)


def test_a_large_file_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_bytes(b"\xff" * 1_000_001)
    with pytest.raises(InputError, match="larger than 100 kB"):
        read_document(path)
    with path.open("wb") as file:
        file.truncate(1 << 40)  # a terabyte with nothing in it: not read to its end
    with pytest.raises(InputError, match="larger than"):
        read_document(path)
    assert "larger than 100 kB" in refusal("#" * 1_000_001).message


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"The file .*none\.yaml does not exist") as caught:
        read_document(tmp_path / "none.yaml")
    assert caught.value.exit_code == 2
    with pytest.raises(InputError, match="cannot be read"):
        read_document(tmp_path)
    (tmp_path / "job.yaml").write_bytes("name: Jülich\n".encode("latin-1"))
    with pytest.raises(InputError, match="not UTF-8"):
        read_document(tmp_path / "job.yaml")


def test_reading_stops_at_a_number_of_values(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int | None] = []
    compose = yaml.SafeLoader.compose_node

    def counted(self: yaml.SafeLoader, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        asked.append(index)
        return compose(self, parent, index)

    monkeypatch.setattr(yaml.SafeLoader, "compose_node", counted)
    with pytest.raises(InputError, match=r"a\.yaml, line 2: more than 20,000 values"):
        Document("a: 1\nb: [" + "1," * 49_000 + "]\n", "a.yaml", plain=True)
    assert len(asked) == 20_000
