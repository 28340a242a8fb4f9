"""What the form offers: to draw what a program prints, and to scale its arguments. Pure."""

import re
from collections.abc import Collection, Iterator, Mapping

from lumitui.remote.site.finding import Finding, Fix
from lumitui.remote.site.source_position import at_key

_VALUE = r"(?:\{[^{}]*\}|%[-+0-9.]*[defg])"
_NAME = r"(?<![\w/])([\w/]*(?:loss|acc(?:uracy)?|ppl|perplexity))"
_NAMED = re.compile(
    rf"{_NAME}[ :=]+{_VALUE}|print\([^\n]{{0,200}}[\"']{_NAME}[ :=]*[\"'],", re.IGNORECASE
)
_UNIT = (
    r"((?:samples?|images?|imgs?|examples?|sequences?|tokens?) ?/ ?s(?:ec(?:ond)?)?)\b"
    r"(?! ?/| ?\(?per\b|(?<=examples/s)\])"  # of one GPU; of a data set that is prepared
)
_SPEED = re.compile(rf"{_VALUE} ?{_UNIT}(?![ :=]+{_VALUE})", re.IGNORECASE)
_SPEED_AFTER = re.compile(rf"{_UNIT}[ :=]+{_VALUE}", re.IGNORECASE)
_LOGGED = r"(?<![\w.,+-])(?>\d[\d,]*(?:\.\d+)?)"
_LOGGED_SPEED = re.compile(
    rf"{_UNIT}[ :=]+{_LOGGED}(?!\w)|{_LOGGED} ?{_UNIT}(?![ :=]+\d)", re.IGNORECASE
)
_STEPS = re.compile(rf"{_LOGGED} ?(?:it|steps?)/s\b|(?:it|steps?)/s[ :=]+{_LOGGED}", re.IGNORECASE)
_SCALED = {
    "batch": re.compile(r"--(?:(?:train|per_device|micro|global)[-_])*(?:batch(?:[-_]?size)?|bs)"),
    "lr": re.compile(r"--(?:(?:base|max|peak)[-_])?(?:lr|learning[-_]rate)"),
}
"""The options of programs for the batch size and the learning rate, by key of `scale:`."""


def undrawn_series(program: str, metrics: str) -> Iterator[Finding]:
    """Yield a note on the series that a program's text prints, with their patterns as its fix.

    `metrics` is the value of that key. A program that writes metrics.jsonl needs none.
    """
    if "metrics.jsonl" in program or "lumitui_run" in program:
        return
    found = [first or second for first, second in _NAMED.findall(program)]
    series = {word: rf"\b{word}[ :=]+([-+0-9.eE]+)" for word in found}
    series |= {word: f"([0-9.,]+) ?{word}" for word in _SPEED.findall(program)}
    series |= {word: f"{word}[ :=]+([0-9.,]+)" for word in _SPEED_AFTER.findall(program)}
    if left := [word for word in series if word.lower() not in metrics.lower()]:
        patterns = {_name(word): series[word] for word in left}
        message = f"The script prints {' and '.join(left)}, which lumitui can draw from the log."
        fix = Fix(f"draw {' and '.join(patterns)}", at_key("metrics"), None,
                  below=tuple(patterns.items()))  # fmt: skip
        yield Finding("", "note", message, at=at_key("metrics"), fix=fix)


def _name(word: str) -> str:
    """Return the name of a series: `images_per_s` of `Images/sec`."""
    name = re.sub(r"^(?:imgs?|image)\b", "images", word.lower().replace(" ", ""))
    return re.sub(r"/s(?:ec(?:ond)?)?$", "_per_s", name).replace("/", "_")


def logged_speed(log: str) -> str:
    """Return a sentence on the last speed that a log prints, with its pattern; "" if none."""
    if found := list(_LOGGED_SPEED.finditer(log)):
        before, after = found[-1].groups()
        pattern = f"{before}[ :=]+([0-9.,]+)" if before else f"([0-9.,]+) ?{after}"
        name = _name(before or after)
        name = name if name.startswith("tokens") else "samples_per_s"
        return (
            f"The log prints `{found[-1][0]}`: with `metrics: {{{name}: '{pattern}'}}` in the job "
            "file, lumitui shows this speed."
        )
    if steps := list(_STEPS.finditer(log)):
        return (
            f"The log prints `{steps[-1][0]}`, which counts steps: print samples/s so that "
            "lumitui can compare sizes."
        )
    return ""


def scaled_options(options: Collection[str]) -> dict[str, str]:
    """Return those of a program's `options` that depend on its size, by key of `scale:`."""
    return {key: one for key, like in _SCALED.items() for one in options if like.fullmatch(one)}


def offers(data: Mapping[str, object], program: str) -> tuple[Finding, ...]:
    """Return the notes on a job file with the keys `data`, whose script has the text `program`."""
    return (*undrawn_series(program, str(data.get("metrics", ""))), *scale_offer(data))


def scale_offer(data: Mapping[str, object]) -> Iterator[Finding]:
    """Yield a note if `args:` has a batch size that `scale:` does not name, with it as the fix."""
    args = data.get("args")
    words = args if isinstance(args, list) else []
    own = scaled_options([str(word).partition("=")[0] for word in words])
    if "batch" in own and not data.keys() & {"scale", "deepspeed", "trainer"}:
        both = "both" if len(own) > 1 else "it"
        message = f"The script takes {' and '.join(own.values())}. On more nodes, scale {both}?"
        rules = {"batch": ("batch.keep", "per_gpu"), "lr": ("lr.rule", "sqrt")}  # as the template
        of_all = [("batch.arg_is", "global")] if "global" in own["batch"] else []
        named = ((f"{key}.arg", own[key]) for key in own)
        below = (*named, *of_all, *(rules[key] for key in own))
        fix = Fix(f"scale {both}", at_key("scale"), None, below=below)
        yield Finding("", "note", message, at=at_key("args"), fix=fix)
