"""What people get wrong, and what arrives unasked: a sentence, a hint, the right exit code.

Every case runs the real program; where a cluster has the say, the real one says it. Nothing is
lost, nothing shows a traceback, and text is carried unchanged or refused.
"""

import hashlib
import json
from pathlib import Path

import pytest

from tests.support.program.command_line import (
    LAPTOP,
    Here,
    envelope,
    history,
    lt,
    told,
    write,
)
from tests.support.program.home import Home

# What shells, YAML, tables, terminals and templates stumble over.
TRICKY = [
    "a|b",
    "'single' \"double\"",
    "two\nlines",
    "$(touch x) `touch x` ; touch x & touch x",
    "[/] [bold]",
    "é 🚀 日本",
    "{{ 7 * 7 }} {% raw %} ${LATER} $LATER %s %j \\n !! # -",
    "--flag=* ?",
    "",
]


# -- job files


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"noeds": 2}, ["job.yaml:10: noeds: unknown key; did you mean `nodes`?"]),
        ({"nodes": "two"}, ["job.yaml:10: nodes: 'two' is not a whole number"]),
        ({"args": {"a": 1}}, ["job.yaml:10: args:"]),
        ({"time": 10}, ["job.yaml:5: time: 10 is ambiguous", "10:00 for 10 minutes"]),
        ({"time": "soon"}, ["'soon' is not a time"]),
        ({"site": "lummi"}, ["not a site", "laptop, "]),
        ({"partition": "big"}, ["no partition 'big'", "local"]),
        ({"script": "../up.py"}, ["inside the project"]),
        ({"script": ""}, ["script: it is empty"]),
        ({"project": "p" * 5000}, ["the project", "File name too long", "project:"]),
        ({"trainer": "ddp"}, ["either `trainer:`"]),
        (
            {"nodes": 2, "noeds": 2, "time": 5},
            ["2 mistakes", "job.yaml:5: time: 5 is ambiguous", "job.yaml:11: noeds"],
        ),
        ({"gpus_per_node": 3}, ["more than the 2 ranks per node"]),
        ({"env": {"WANDB_API_KEY": "abc"}}, ["looks like a secret", "secrets:"]),
        ({"env": {"A B": "1"}}, ["'A B' is not a variable name"]),
        ({"name": "two\nlines"}, ["name", "one line"]),
        ({"name": "bell\x07"}, ["control character"]),
        ({"name": "x" * 168}, ["name: 'xxx", "has more than 100 characters"]),
        ({"name": ""}, ["name: it is empty"]),
        ({"args": ["\x1b[31m"]}, ["control character"]),
        ({"launcher": "rocket"}, ["'rocket' is not a launcher"]),
        ({"project": "no such folder"}, ["is not a folder"]),
    ],
)
def test_a_wrong_job_file_is_reported_with_its_line(
    here: Here, home: Home, path: Path, changes: dict[str, object], words: list[str]
) -> None:
    write(path, LAPTOP | changes)
    done = here("submit", str(path), "--yes")
    assert "abc" not in told(done, 2, *words)
    assert history(home) == []


def test_paths_that_lead_nowhere_are_one_sentence(here: Here, path: Path) -> None:
    write(path, LAPTOP)
    (path.parent / "loop").symlink_to("loop")
    loop, long = str(path.parent / "loop"), "p" * 5000
    write(path.parent / "looping.yaml", LAPTOP | {"project": "loop"})
    name, inside = str(path.parent / ("n" * 300)), f"{path}/inside"
    script = path.parent / "job.sh"
    script.write_text("#!/bin/bash\n#SBATCH --nodes=1\nsrun python hello.py\n")
    for place in (name, inside, loop, f"{loop}/a"):
        told(here("history", "--export", place), 2)
        told(here("history", "--import", place), 2)
        told(here("import", place), 2)
        told(here("import", str(script), "--site", "lumi", "-o", f"{place}/job.yaml"), 2)
        staging = path.parent / "staging.yaml"
        for stage in ({"D": place}, {"D": f"{place}/in/it"}):
            write(staging, LAPTOP | {"stage": stage})
            done = here("preview", str(staging))
            assert done.returncode in (1, 2) and "stage: D" in done.stdout + done.stderr
    for words in (
        ("preview", str(path.parent / "looping.yaml")), ("preview", loop), ("preview", long),
        ("export", str(path), ""), ("export", str(path), long), ("export", str(path), f"{loop}/a"),
        ("preview", ""), ("demo", "--to", ""), ("fetch", "last", "--to", ""),
        ("new", "--site", "laptop", "--output", ""),
        ("new", "--site", "laptop", "--output", f"{loop}/job.yaml"),
        ("new", "--site", "laptop", "--output", f"{long}/job.yaml"),
        (long,), ("lint", long), ("lint", loop),
    ):  # fmt: skip
        told(here(*words), 2, *(["the path is empty"] if "" in words else []))


def test_files_that_are_no_job_files_are_refused(here: Here, tmp_path: Path) -> None:
    told(here("preview", str(tmp_path / "no.yaml")), 2, "no.yaml does not exist")
    told(here("preview", str(tmp_path)), 2, "cannot be read")
    for content, word in (
        (b"", "mistakes"),
        (b"\xff\xfe\x00binary", "UTF-8"),
        (b"- a\n- list\n", "key: value"),
        (b"name: [unclosed\n", "not valid YAML"),
        (b"name: &a [*a]\n", "alias"),
        (b"x: " + b"[" * 5000, "levels deep"),
        (b"#" * 2_000_000, "larger than"),
    ):
        (tmp_path / "job.yaml").write_bytes(content)
        told(here("preview", str(tmp_path / "job.yaml")), 2, word)
    error = envelope(here("preview", str(tmp_path / "no.yaml"), "--json"))["error"]
    assert (error["exit_code"], bool(error["hint"])) == (2, True)


def test_a_time_over_the_limit_and_a_missing_script_are_not_sent(
    here: Here, home: Home, path: Path
) -> None:
    write(path, LAPTOP | {"time": "2-00:00:00"})
    told(here("submit", str(path), "--yes"), 2, "2-00:00:00 is longer than local allows")
    done = here("submit", str(path), "--yes")
    assert "The job has 1 error (time-limit)" in done.stderr and "--force" in done.stderr
    assert here("submit", str(path)).returncode == 2
    write(path, LAPTOP | {"script": "train.py"})
    told(here("submit", str(path), "--yes"), 2, "The code lacks the script train.py")
    told(here("submit", str(path), "--yes", "--force"), 2, "The code lacks the script train.py")
    (path.parent / ".gitignore").write_text("hello.py\n")
    write(path, LAPTOP)
    told(here("submit", str(path), "--yes"), 2, "hello.py", ".gitignore")
    assert history(home) == []


def test_force_sends_a_job_with_errors_and_a_warning_needs_none(
    here: Here, home: Home, path: Path
) -> None:
    write(path, LAPTOP | {"time": "2-00:00:00"})
    done = here("submit", str(path), "--yes", "--force", "--wait")
    assert done.returncode == 0, done.stderr
    write(path, LAPTOP | {"hang": "00:10:00"})
    done = here("submit", str(path), "--yes", "--wait")
    assert "warning: `hang:` has no effect" in done.stderr
    assert done.returncode == 0 and len(history(home)) == 2


def test_a_run_is_sent_again_with_errors_only_by_force(here: Here, home: Home, path: Path) -> None:
    write(path, LAPTOP)
    assert here("submit", str(path), "--yes", "--wait").returncode == 0
    first = str(history(home)[0]["id"])
    for sizes in (("--nodes", "1"), ("--ladder", "1")):
        again = ("resubmit", first, "--set", "time=2-00:00:00", *sizes)
        told(here(*again), 2, "1 error (time-limit)", "--set or --nodes", "--force")
        told(here(*again, "--yes"), 2, "1 error (time-limit)", "--force")
    done = here("resubmit", first, "--set", "time=2-00:00:00", "--force")
    assert "The job has 1 error (time-limit). Resubmit" in done.stderr, done.stderr
    assert len(history(home)) == 1, "--force is no --yes"
    done = here("resubmit", first, "--set", "time=2-00:00:00", "--yes", "--force")
    assert done.returncode == 0, done.stderr
    done = here("resubmit", first, "--set=time=2-00:00:00", "--ladder=1", "--yes", "--force")
    assert done.returncode == 0, done.stderr
    assert len(history(home)) == 3


def test_a_preview_shows_what_a_send_would_refuse(here: Here, home: Home, path: Path) -> None:
    (path.parent / "sub").mkdir(parents=True)
    (path.parent / "sub" / "kept").write_text("")
    for changes, words in (
        ({"script": "train.py"}, ("lacks the script train.py", str(path.parent))),
        ({"script": "sub"}, ("lacks the script sub",)),
        ({"workdir": "nothere"}, ("no files in the working folder nothere",)),
        ({"workdir": "hello.py"}, ("no files in the working folder hello.py",)),
        ({"project": "gone"}, ("gone is not a folder",)),
        ({"secrets": ["HF_TOKEN_OF_NOBODY"]}, ("HF_TOKEN_OF_NOBODY is not set",)),
    ):
        write(path, LAPTOP | changes)
        done = here("preview", str(path))
        assert done.returncode == 2 and bool(done.stdout) is ("script" not in changes), done.stderr
        (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        assert all(word in line for word in words), line
        told(here("submit", str(path), "--yes"), 2, *words)
    write(path, LAPTOP)
    write(path, LAPTOP | {"script": "helo.py"})
    assert "Did you mean hello.py? Put it into" in here("preview", str(path)).stderr
    assert here("preview", "--script", str(path)).stdout.startswith("#!/bin/bash")
    write(path, LAPTOP | {"partition": "locl"})
    told(here("preview", str(path)), 2, f"{path.name}, line ", "Did you mean local?")
    write(path, LAPTOP)
    (path.parent / ".gitignore").write_text("hello.py\n")
    assert "error: The code lacks the script hello.py" in here("preview", str(path)).stderr
    (path.parent / ".gitignore").unlink()
    for changes in ({}, {"workdir": "./sub/"}, {"script": "./hello.py"}):
        write(path, LAPTOP | changes)
        done = here("preview", str(path))
        assert (done.returncode, "error" in done.stderr) == (0, False), done.stderr
    assert here("submit", str(path), "--yes", "--wait").returncode == 0
    assert len(history(home)) == 1
    # Sent again with the code of now, which lacks it; the code that is there has it.
    (path.parent / "hello.py").unlink()
    told(here("resubmit", "last", "--code", "current", "--yes"), 2, "lacks the script ./hello.py")
    assert here("resubmit", "last", "--yes").returncode == 0


def test_runs_and_settings_that_are_not_there_are_refused(
    here: Here, home: Home, path: Path
) -> None:
    told(here("show", "last"), 2, "There are no runs yet.")
    write(path, LAPTOP)
    run = here("submit", str(path), "--yes", "--wait").stdout.strip()
    told(here("show", "hallo"), 2, "'hallo' is not a run", run)
    for words, message in (
        (("--nodes", "0"), "0 nodes"),
        (("--nodes", "99"), "local has (8)"),
        (("--set", "noeds=2"), "did you mean `nodes`"),
        (("--set", "nodes"), "is not a setting"),
        (("--set", "time=10"), "ambiguous"),
        (("--from", "checkpoint"), "resume"),
    ):
        told(here("resubmit", run, *words, "--yes"), 2, message)
    assert len(history(home)) == 1


# -- text that is not as expected


def check_carried(here: Here, run: str, expected_env: str) -> None:
    # JSON escapes every control character, so a record is one line whatever the text.
    done = here("logs", run)
    (line,) = [line for line in done.stdout.splitlines() if '"argv"' in line]
    said = json.loads(line[line.index("{") :])
    assert said["argv"] == TRICKY
    assert said["probe"] == expected_env


def test_tricky_text_is_carried_unchanged_on_this_machine(
    home: Home, here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "a 'b' \"c\" $(touch x) [/] 🚀"
    script = "sub $(touch x)/he'llo |.py"
    probe = "\n".join(TRICKY)
    name = "$(touch x) 'a' \"b\" | [/] 🚀"
    job = LAPTOP | {"name": name, "script": script, "workdir": "sub $(touch x)"}
    path = write(folder / "job.yaml", job | {"args": TRICKY, "env": {"PROBE_TEXT": probe}})
    (folder / script).parent.mkdir()
    (folder / "hello.py").rename(folder / script)
    done = lt(home, "submit", str(path), "--yes", "--wait")
    assert done.returncode == 0, done.stderr + here("logs", "last").stdout
    check_carried(here, done.stdout.strip(), probe)
    (row,) = history(home)
    assert row["name"] == name
    assert name in here("show", "last").stdout
    assert [found for found in tmp_path.rglob("x")] == []


def test_file_names_with_control_characters_are_refused_or_carried(here: Here, path: Path) -> None:
    write(path, LAPTOP)
    (path.parent / "bad\x1b]0;title\x07name").write_text("")
    done = here("submit", str(path), "--yes", "--wait")
    assert "\x1b" not in done.stderr
    if done.returncode:
        told(done, 2, "name")


def test_words_of_the_command_line_cannot_control_the_terminal(here: Here) -> None:
    for words in (("show", "\x1b[2Jx"), ("preview", "\x1b]0;t\x07\u202e"), ("\x1b[31mverb",)):
        done = here(*words)
        told(done, 2)
        assert "\x1b" not in done.stderr and "\u202e" not in done.stderr


def test_a_secret_reaches_the_job_and_nothing_else(
    home: Home, here: Here, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = "s3cr3t-'q\"$(touch x)-🚀"
    write(path, LAPTOP | {"secrets": ["WANDB_API_KEY"]})
    (path.parent / "hello.py").write_text(
        "import glob, hashlib, os\n"
        "value = os.environ['WANDB_API_KEY'].encode()\n"
        "print(hashlib.sha256(value).hexdigest())\n"
        "for name in glob.glob('/proc/[0-9]*/cmdline'):\n"
        "    try:\n"
        "        assert value not in open(name, 'rb').read(), name\n"
        "    except OSError:\n"
        "        pass\n"
    )
    told(here("submit", str(path), "--yes"), 2, "WANDB_API_KEY is not set")
    assert history(home) == []
    monkeypatch.setenv("WANDB_API_KEY", value)
    done = lt(home, "submit", str(path), "--yes", "--wait")
    log = here("logs", "last").stdout
    assert done.returncode == 0, log
    assert hashlib.sha256(value.encode()).hexdigest() in log
    (row,) = history(home)
    shown = done.stdout + done.stderr + log + here("show", "last", "--json").stdout
    assert "s3cr3t" not in shown
    secret = value.split("-")[0].encode()
    kept = [
        file
        for folder in (home.data, Path(row["folder"]))
        for file in folder.rglob("*")
        if file.is_file() and file.name != ".secrets" and secret in file.read_bytes()
    ]
    assert kept == []
    for file in Path(row["folder"]).glob(".secrets"):
        assert file.stat().st_mode & 0o077 == 0
    assert list(path.parent.rglob("x")) == []
