"""What the cluster refuses, links that fail, files that changed: reported, and nothing is lost."""

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from lumitui.app.launch.send import submit
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import InputError, LinkLost
from lumitui.remote.source.manifest import Manifest
from lumitui.remote.transfer.contents.content_upload import Shipped
from lumitui.remote.transfer.snapshots.snapshot_store import sync
from lumitui.remote.transport.transport import Transport
from tests.support.jobs.small_jobs import hello_job, hello_project
from tests.support.program.command_line import (
    CLUSTER,
    Here,
    envelope,
    history,
    lt,
    on_terminal,
    told,
    write,
)
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster
from tests.support.servers.sshd import Sshd, new_key


def test_a_refused_account_and_option_are_reported_in_slurms_words(
    home: Home, here: Here, cluster: Cluster, path: Path
) -> None:
    home.add_cluster(cluster)
    # Files are sent to the account's own scratch, so the first project's is named.
    profile = "extends: minilumi\nwork_root: /scratch/project_462000001/{user}/lumitui\n"
    (home.config / "sites" / "foreign.yaml").write_text(profile)
    write(path, CLUSTER | {"site": "foreign", "account": "project_462000002"})
    told(here("submit", str(path), "--yes"), 4, "Invalid account", "Check `account:`")
    write(path, CLUSTER | {"sbatch": ["--constraint=nosuch"]})
    told(here("submit", str(path), "--yes"), 4, "The scheduler refused the job", "feature")
    refused = history(home)
    assert [row["state"] for row in refused] == ["refused", "refused"]
    assert all(row["job_id"] is None and row["reason"] for row in refused)


def test_a_foreign_account_without_a_folder_is_refused_and_kept(
    home: Home, here: Here, cluster: Cluster, path: Path
) -> None:
    home.add_cluster(cluster)
    write(path, CLUSTER | {"account": "project_462000002"})
    words = told(here("submit", str(path), "--yes"), 4, "Permission denied")
    assert "hint: Are you a member of project_462000002? Check `account:`" in words
    assert "lumitui site check minilumi --account project_462000002" in words
    assert [row["state"] for row in history(home)] == ["refused"]


# -- connections


def reach(home: Home, cluster: Cluster, folder: Path, **changes: str) -> Path:
    """Make the site `other`: the cluster by an ssh configuration with some lines changed."""
    home.add_cluster(cluster)
    lines = []
    for line in cluster.ssh_config.read_text().splitlines():
        key = line.split()[0] if line.split() else ""
        lines.append(f"  {key} {changes[key]}" if key in changes else line)
    config = folder / "ssh_config"
    config.write_text("\n".join([*lines, "  GlobalKnownHostsFile /dev/null"]) + "\n")
    profile = f"extends: minilumi\nhosts: {{ssh_config: {config}}}\n"
    (home.config / "sites" / "other.yaml").write_text(profile)
    return config


def test_an_unreachable_host_is_reported_and_the_run_is_kept(
    home: Home, here: Here, cluster: Cluster, path: Path
) -> None:
    write(path, CLUSTER | {"site": "other"})
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        reach(home, cluster, path.parent, Port=str(closed.getsockname()[1]))
        told(here("site", "check", "other"), 3, "127.0.0.1")
        told(here("submit", str(path), "--yes"), 3, "127.0.0.1", "No job was submitted.")
    (row,) = history(home)
    assert (row["state"], row["job_id"]) == ("not sent", None)
    reach(home, cluster, path.parent)
    words = ("resubmit", row["id"], "--code", "current", "--yes")
    done = here(*words)
    assert done.returncode == 0, done.stderr
    assert here("cancel", done.stdout.strip(), "--yes").returncode == 0


def test_a_site_that_went_away_leaves_its_runs_as_they_were(
    home: Home, here: Here, cluster: Cluster, path: Path
) -> None:
    write(path, CLUSTER | {"site": "other"})
    reach(home, cluster, path.parent)
    (path.parent / "hello.py").write_text("import time\ntime.sleep(100)\n")
    run = here("submit", str(path), "--yes").stdout.strip()
    reach(home, cluster, path.parent, Port="1")
    done = here("status", "--json")
    assert done.returncode == 3
    data = envelope(done)["data"]
    assert [(row["state"], row["stale"]) for row in data["runs"]] == [("queued", True)]
    assert "other" in data["warnings"][0] and "Traceback" not in done.stderr
    told(here("logs", run), 3)
    told(here("cancel", run, "--yes"), 3)
    reach(home, cluster, path.parent)
    assert here("cancel", run, "--yes").returncode == 0


def test_a_refused_key_is_reported(
    home: Home, here: Here, cluster: Cluster, tmp_path: Path
) -> None:
    key = new_key(tmp_path / "stranger")
    for identity in (key, tmp_path / "nothing"):
        # This sshd would take a password too, and there is nobody to give one.
        reach(home, cluster, tmp_path, IdentityFile=str(identity))
        told(
            here("site", "check", "other"),
            3,
            f"alice@127.0.0.1:{cluster.port}",
            "not completed",
        )
    server = Sshd(tmp_path / "sshd")
    try:
        server.trust()
        server.configure(f"IdentityFile {key}")
        server.allow(server.host_key)
        hosts = f"{{login: site, ssh_config: '{server.config}'}}"
        (home.config / "sites" / "other.yaml").write_text(f"extends: minilumi\nhosts: {hosts}\n")
        told(here("site", "check", "other"), 3, "was refused", str(key), "Register one of these")
    finally:
        server.stop()


def test_an_unknown_host_key_is_asked_for_and_never_taken_unseen(
    home: Home, cluster: Cluster, tmp_path: Path
) -> None:
    known = tmp_path / "known_hosts"
    reach(home, cluster, tmp_path, UserKnownHostsFile=str(known))
    err = told(lt(home, "site", "check", "other"), 3, "SHA256:", "Nobody accepted")
    assert "there is no terminal" in err
    assert not known.exists()
    code, shown = on_terminal(home, ["site", "check", "other"], "no\n", "(yes/no)")
    assert (code, known.exists()) == (3, False), shown
    code, shown = on_terminal(home, ["site", "check", "other"], "yes\n", "(yes/no)")
    assert code == 0, shown
    assert known.read_text().count("\n") == 1
    assert lt(home, "site", "check", "other").returncode == 0


def test_a_changed_host_key_is_refused_with_its_place(
    home: Home, here: Here, cluster: Cluster, tmp_path: Path
) -> None:
    known = tmp_path / "known_hosts"
    other = new_key(tmp_path / "impostor").with_suffix(".pub").read_text().split()[:2]
    names = cluster.known_hosts.read_text().split()[0]
    known.write_text(f"{names} {' '.join(other)}\n")
    before = known.read_bytes()
    reach(home, cluster, tmp_path, UserKnownHostsFile=str(known))
    told(here("site", "check", "other"), 3, "changed", f"{known}:1", "ssh-keygen -R")
    assert known.read_bytes() == before


def test_a_host_key_other_than_the_published_one_is_refused(
    home: Home, here: Here, cluster: Cluster, tmp_path: Path
) -> None:
    config = reach(home, cluster, tmp_path, UserKnownHostsFile=str(tmp_path / "known"))
    print_of = "SHA256:" + "A" * 43
    hosts = f"{{ssh_config: {config}, fingerprints: {{ed25519: '{print_of}'}}}}"
    profile = f"extends: minilumi\nhosts: {hosts}\n"
    (home.config / "sites" / "other.yaml").write_text(profile)
    told(here("site", "check", "other"), 3, f"the site publishes {print_of}")
    assert not (tmp_path / "known").exists()


def test_a_file_that_changed_here_is_no_refusal_of_the_site(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = hello_project(tmp_path / "project")

    def later(
        transport: Transport,
        folder: str,
        state: Manifest,
        where: Callable[[str], Path],
        known: Manifest | None,
    ) -> Shipped:
        (project / "hello.py").write_text("other")
        return sync(transport, folder, state, where, known)

    monkeypatch.setattr(submit, "sync", later)
    job = hello_job(site="laptop", partition="local", account="none")
    with pytest.raises(InputError, match=r"'hello\.py' changed"):
        runs.send(runs.preview(job, project))
    (left,) = runs.history.page(9)
    assert left.state is State.NOT_SENT and "'hello.py' changed" in left.reason


def test_a_link_lost_before_the_submission_leaves_nothing_unknown(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(*_: object) -> bool:
        raise LinkLost("The connection was lost.", "It is not known whether it was carried out.")

    monkeypatch.setattr(submit, "prepare", cut)
    job = hello_job(site="laptop", partition="local", account="none")
    with pytest.raises(LinkLost) as lost:
        runs.send(runs.preview(job, hello_project(tmp_path / "project")))
    assert lost.value.message == "The connection was lost. No job was submitted."
    assert lost.value.hint == "Send it again when the site answers."
    assert [run.state for run in runs.history.page(9)] == [State.NOT_SENT]
