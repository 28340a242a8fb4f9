"""The keys in which job files differ, one row per key. Pure."""

from collections.abc import Iterator, Mapping, Sequence

from lumitui.app.job.fields.mapping_fields import Scale
from lumitui.app.job.spec import JobSpec
from lumitui.app.knowledge.program.step_program import is_number

ABSENT = "-"
"""The word for a key that a job file lacks."""
ARGUMENTS = "args"


def differing_rows(specs: Sequence[JobSpec]) -> list[tuple[str, tuple[str, ...]]]:
    """Return each key in which job files differ, with its value in each file.

    A nested key is named with dots (`scale.lr.rule`), a program argument by itself (`--lr`).
    """
    return [*_differing([_values(spec) for spec in specs]), *_arguments(specs)]


def value_words(value: object) -> str:
    """Return a value as in a job file; `-` for none."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return " ".join(map(_word, value)) or ABSENT
    return ABSENT if value is None or value == "" else str(value)


def _word(value: object) -> str:
    text = str(value)
    return text if text and not any(letter.isspace() for letter in text) else f'"{text}"'


def _differing(
    files: Sequence[Mapping[str, str]],
) -> Iterator[tuple[str, tuple[str, ...]]]:
    for key in dict.fromkeys(key for values in files for key in values):
        words = tuple(values.get(key, ABSENT) for values in files)
        if len(set(words)) > 1:
            yield key, words


def _values(spec: JobSpec) -> dict[str, str]:
    """Return all keys as words, except the arguments."""
    data = spec.model_dump(mode="json", exclude={ARGUMENTS})
    # A missing `scale:` means its defaults, so it is not a difference.
    data["scale"] = (spec.scale or Scale()).model_dump(mode="json")
    return dict(_flat(data, ""))


def _flat(data: Mapping[str, object], above: str) -> Iterator[tuple[str, str]]:
    for key, value in data.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value_words(value)


def _arguments(specs: Sequence[JobSpec]) -> list[tuple[str, tuple[str, ...]]]:
    """Return a row for each argument that differs; one row for all if only their order does."""
    rows = list(_differing([_options(spec.args) for spec in specs]))
    whole = [{ARGUMENTS: value_words(spec.args)} for spec in specs]
    return rows or list(_differing(whole))


def _options(args: Sequence[str]) -> dict[str, str]:
    """Return the values of each option by its name; those before all options are `args`."""
    by_name: dict[str, list[str]] = {}
    name = ARGUMENTS
    for word in args:
        if word.startswith("-") and not is_number(word):
            name, equals, value = word.partition("=")
            by_name.setdefault(name, []).extend([value] if equals else [])
        else:
            by_name.setdefault(name, []).append(word)
    # An option without a value is either present or not.
    return {name: value_words(values) if values else "given" for name, values in by_name.items()}
