"""The adviser: each rule speaks when it should, and is silent when not."""

import pytest

from lumitui.app.job.spec import changed
from lumitui.app.launch.adviser.adviser import findings
from lumitui.app.launch.compose import compose
from lumitui.remote.site.profile import Site
from lumitui.remote.site.sites import BUILT_IN, Sites
from tests.support.files.secrets import KEYS, Key
from tests.support.jobs.sites.lumi_job import JOB, job
from tests.support.jobs.sites.site_jobs import launched, site

LUMI = Sites([BUILT_IN]).load("lumi")
GLOBAL = {"trainer": None, "script": "t.py", "scale": {"batch": {"arg": "--b", "arg_is": "global"}}}


def said(_site: Site = LUMI, /, **changes: object) -> dict[str, str]:
    site, spec = _site, changed(JOB, changes, "t")
    return {item.rule: item.severity for item in findings(compose(spec, site), site)}


def test_a_good_job_has_no_error_and_no_warning() -> None:
    assert not {severity for severity in said().values()} & {"error", "warning"}


@pytest.mark.parametrize(
    ("changes", "rule", "severity"),
    [
        ({"account": "project_xxxxxxxxx"}, "account", "error"),
        ({"account": "project_462000000"}, "account", "error"),  # the example that is shown
        ({"account": "none"}, "account", "error"),
        ({"args": ["--lr", "$LR"]}, "literal-argument", "warning"),
        ({"args": ["$@"]}, "literal-argument", "warning"),
        ({"args": ["--data=/x/$LUSTRE/data"]}, "literal-argument", "warning"),
        ({"args": ["--out", "${SLURM_JOB_ID}"]}, "literal-argument", "warning"),
        ({"args": ["--n=$(nproc)"]}, "literal-argument", "warning"),
        ({"python": "$PWD/bin/python"}, "literal-argument", "error"),
        ({"links": {"data": "$LUSTRE/data"}}, "literal-argument", "error"),
        (GLOBAL | {"args": ["--b=100"]}, "batch-split", "error"),
        (GLOBAL | {"args": ["--b", "+100"]}, "batch-split", "error"),
        *((GLOBAL | {"args": [f"--b={n}"]}, "batch-split", "error") for n in (0, "-8", 10**8)),
        *(
            ({"trainer": "ddp", "script": None, "args": args}, "batch-split", "error")
            for args in (["--batch-size", "0"], ["--batch-size=abc"], ["--batch-size", "--lr=1"])
        ),
        # The ranks of one node could share it.
        (GLOBAL | {"args": ["--b=104"], "nodes": 3}, "batch-split", "error"),
        ({"time": "3-00:00:00"}, "time-limit", "error"),
        ({"nodes": 1025}, "nodes", "error"),
        ({"partition": "small-g", "nodes": 5}, "nodes", "error"),
        ({"chain": 4, "sbatch": ["--no-requeue"]}, "chain-requeue", "error"),
        ({"cpus_per_task": 8}, "cores", "error"),
        ({"launcher": "torchrun", "cpus_per_task": 7}, "few-cores", "error"),
        ({"launcher": "torchrun", "cpus_per_task": 55}, "few-cores", "error"),
        (
            {"launcher": "torchrun", "cpus_per_task": 28, "gpus_per_node": 4},
            "few-cores",
            "error",
        ),
        ({"launcher": "torchrun", "cpus_per_task": 7, "binding": "none"}, "few-cores", "warning"),
        (
            {"launcher": "torchrun", "cpus_per_task": 7, "partition": "small-g"},
            "few-cores",
            "warning",
        ),
        ({"gpus_per_node": 4}, "idle-gpus", "warning"),
        ({"partition": "small-g", "nodes": 2, "gpus_per_node": 4}, "scattered", "warning"),
        ({"partition": "small-g"}, "shared-cores", "note"),
        ({"binding": "none"}, "no-binding", "note"),
        (
            {"nodes": 2, "env": {"NCCL_NET_GDR_LEVEL": "PHB"}},
            "container-variable",
            "error",
        ),
        ({"sbatch": ["--gpus-per-task=1"]}, "gpu-cgroup", "error"),
        ({"sbatch": ["--gpu-bind=closest"]}, "gpu-cgroup", "error"),
        ({"sbatch": ["--output=x"]}, "own-option", "error"),
        ({"sbatch": ["--exclude=n1 --array=1-5"]}, "own-option", "error"),
        *(
            ({"sbatch": [option]}, "own-option", "error")
            for option in (
                *("--exclusive", "--exclusive=user", "--mem=480G", "--mem 480G", "--mem=0"),
                *("--mem-per-cpu=2G", "--mem-per-gpu=60G", "--gpus=4", "-G4", "--gpus-per-node=4"),
                *("--gpus-per-socket=4", "--gres=gpu:4"),
                # sbatch takes prefixes, and letters together.
                *(
                    "--arr=0-2",
                    "--gpus-per-nod=8",
                    "--part standard-g",
                    "--exclusi",
                    "--mem-per-g=9G",
                ),
                *("-Qa0-2", "-Ha 0-2", "-Ot180", "-QN2", "-sN2", "-Mother", "--test-only"),
            )
        ),
        *(
            ({"sbatch": [option]}, "threads-as-cores", "error")
            for option in (
                *("--hint=multithread", "--hint multithread", "--exclude=n1 --hin=multithread"),
                *("--threads-per-core=2", "--threads-per=2", "-B 2", "-B1:64", "-B1:64:2"),
                *("--extra-node-info=1:64:*", "--ntasks-per-core=1"),
            )
        ),
        (
            {"launcher": "torchrun", "sbatch": ["--hint=multithread"]},
            "threads-as-cores",
            "error",
        ),
        ({"sbatch": ["--hint=nomultithread --whole"]}, "unknown-directive", "warning"),
        ({"sbatch": ["-Y"]}, "unknown-directive", "warning"),
        ({"sbatch": ["--con"]}, "unknown-directive", "error"),  # ambiguous
        ({"partition": "small-g", "memory": "600G"}, "memory", "error"),
        ({"memory": "481G"}, "memory", "error"),
        ({"name": "bash"}, "job-name", "warning"),
        ({"time": "12:00:00"}, "no-checkpoint-signal", "note"),
        ({"hang": "00:10:00"}, "no-heartbeat", "warning"),
    ],
)
def test_a_rule_speaks(changes: dict[str, object], rule: str, severity: str) -> None:
    assert said(LUMI, **changes).get(rule) == severity
    assert rule not in said()


def test_an_unknown_option_of_sbatch_names_its_key_and_what_was_meant() -> None:
    spec = changed(JOB, {"sbatch": ["--exlude=nid005001"]}, "t")
    (found,) = (one for one in findings(compose(spec, LUMI), LUMI) if one.severity == "error")
    assert (found.at.field, found.do) == ("sbatch", "Write --exclude=nid005001.")


LAIF = "/appl/local/laifs/containers/lumi-multitorch-{0}/lumi-multitorch-full-{0}.sif"
LAIF_IMAGES = (
    *(LAIF.format(f"u24r64f21m43t29-{built}") for built in ("20251209_134408", "20260319_153422")),
    LAIF.format("u24r70f21m50t210-20260807_115122"),
    "/appl/local/laifs/containers/lumi-multitorch-latest.sif",
    "/scratch/project_462000001/lumi-multitorch-full-u24r70f21m50t210-20260415_130625.sif",
)
LEGACY_IMAGES = (
    LUMI.containers["legacy"].image,
    "/appl/local/containers/easybuild-sif-images/lumi-pytorch-rocm-6.2.4-python-3.12.sif",
    "/appl/local/containers/tested-containers/lumi-jax-rocm-6.2.0.sif",
    "../resources/lumi-pytorch-rocm-6.2.1-python-3.12-pytorch-20240918-vllm-4075b35.sif",
)


@pytest.mark.parametrize("image", LAIF_IMAGES + LEGACY_IMAGES)
def test_an_image_goes_with_its_generation_only(image: str) -> None:
    own, other = ("laif", "legacy") if image in LAIF_IMAGES else ("legacy", "laif")
    ids = {"image-generation", "image-unknown"}
    mixed = said(LUMI, container={"image": image, "generation": other})
    assert mixed["image-generation"] == "error"
    assert not ids & set(said(LUMI, container={"image": image, "generation": own}))
    untold = said(LUMI, container={"image": image})
    assert ("image-generation" in untold) is (own != LUMI.default_container)
    assert "image-unknown" not in untold


@pytest.mark.parametrize("gpus", [2, 8])
def test_a_job_on_shared_nodes_says_at_its_key_how_to_get_a_proof(gpus: int) -> None:
    spec = job(partition="small-g", gpus_per_node=gpus)
    note = next(one for one in findings(compose(spec, LUMI), LUMI) if one.rule == "shared-cores")
    assert (note.at.field, note.severity) == ("exclusive", "note")
    # lumitui requests the memory of a whole node itself.
    assert "set `exclusive: true`" in note.do and "memory" not in note.do
    assert note.do.endswith("all 8 GPUs of each node, not 2." if gpus == 2 else "of each node.")
    assert "shared-cores" not in said(partition="small-g", gpus_per_node=1)
    spec = changed(spec, {"gpus_per_node": 2, "exclusive": True}, "t")
    paid = next(one for one in findings(compose(spec, LUMI), LUMI) if one.rule == "exclusive-part")
    assert paid.severity == "note", "a fix of lumitui's own led here"
    assert paid.do == (
        "Remove `exclusive: true` (the proof is then `not measured`), or request all GPUs."
    )


def test_an_image_of_unknown_kind_is_noted_until_its_generation_is_named() -> None:
    mine = "/scratch/project_462000001/mine.sif"
    assert said(LUMI, container={"image": mine})["image-unknown"] == "note"
    for generation in ("laif", "legacy"):
        known = said(LUMI, container={"image": mine, "generation": generation})
        assert not {"image-generation", "image-unknown"} & set(known)
    assert not {"image-generation", "image-unknown"} & set(said(LUMI, container={"none": True}))


def test_a_launcher_that_does_not_work_there_is_refused() -> None:
    only_srun = LUMI.model_copy(update={"launchers": ("srun",)})
    assert said(only_srun, launcher="torchrun")["launcher"] == "error"
    assert "launcher" not in said(only_srun)


@pytest.mark.parametrize(
    "changes",
    [
        *(
            {"sbatch": [option]}
            for option in (
                *("--hint=nomultithread", "--hint=compute_bound", "--threads-per-core=1"),
                *("-B 1:64:1", "-B *:*:1", "--cores-per-socket=64", "--exclude=n1"),
            )
        ),
        {"sbatch": ["--hint=multithread"], "binding": "none"},
        {"sbatch": ["--hint=multithread"], "partition": "small-g"},
        {"sbatch": ["--overcommit"]},
    ],
)
def test_an_option_that_keeps_the_planned_cores_is_not_refused(changes: dict[str, object]) -> None:
    assert "threads-as-cores" not in said(LUMI, **changes)
    once = LUMI.node.model_copy(update={"threads_per_core": 1})
    single = LUMI.model_copy(update={"node": once})
    assert "threads-as-cores" not in said(single, sbatch=["--hint=multithread"])


def test_overcommit_is_refused_with_masks_unless_the_job_requests_whole_nodes() -> None:
    small = LUMI.partitions["small-g"].model_copy(update={"whole_when_full": True})
    site = LUMI.model_copy(update={"partitions": {**LUMI.partitions, "small-g": small}})
    asked = {"partition": "small-g", "sbatch": ["-O"], "cpus_per_task": 7}
    assert said(site, **asked)["threads-as-cores"] == "error"
    assert "threads-as-cores" not in said(site, exclusive=True, **asked)
    assert "threads-as-cores" not in said(site, launcher="torchrun", **asked)


def test_an_option_that_counts_threads_is_removed_by_its_fix() -> None:
    spec = changed(JOB, {"sbatch": ["--exclude=nid005001", "--hint=multithread"]}, "t")
    found = findings(compose(spec, LUMI), LUMI)
    (one,) = (each for each in found if each.rule == "threads-as-cores")
    assert one.fix and one.fix.value == ("--exclude=nid005001",)
    assert "srun refuses the masks" in one.message and "`binding: none`" in one.do


def test_a_harmless_option_is_not_refused() -> None:
    assert not {"gpu-cgroup", "own-option"} & set(
        said(LUMI, sbatch=["--exclude=nid005001", "--gpu-bind=none", "--mem-bind=local"])
    )
    assert "own-option" not in said(LUMI, sbatch=["--gres-flags=enforce-binding"])
    for memory in ("480G", "0", "1K"):
        assert "memory" not in said(LUMI, memory=memory)


@pytest.mark.parametrize("key", KEYS[4:], ids=lambda key: key.text[:12])
def test_a_key_in_the_job_file_is_found(key: Key) -> None:
    text = key.text.partition("=")[2] if "=" in key.text[:30] else key.text
    spec = job(env={"MODEL": key.text}, args=["--hub", key.text], resume=[f"--x={key.text}"])
    found = [item for item in findings(compose(spec, LUMI), LUMI) if item.rule == "secret-in-words"]
    assert len(found) >= 3 and all(text not in item.message + item.do for item in found)
    assert key.what in found[0].message and "secrets:" in found[0].do


@pytest.mark.parametrize(
    "changes",
    [
        {"env": {"PROXY": "http://bob:pl4nted@proxy:3128"}},
        {"env": {"DB_DSN": "password=pl4nted"}},
        {"args": ["--api-key=pl4nted"]}, {"args": ["--db-password", "pl4nted"]},
        {"args": ["--header", "Authorization: Bearer pl4nted12"]}, {"resume": ["--token=pl4nted"]},
    ],
)  # fmt: skip
def test_a_password_in_the_job_file_is_warned_about_and_not_repeated(
    changes: dict[str, object],
) -> None:
    spec = changed(JOB, changes, "t")
    (one,) = [
        item for item in findings(compose(spec, LUMI), LUMI) if item.rule == "secret-in-words"
    ]
    assert one.severity == "warning" and "pl4nted" not in one.message + one.do


def test_the_path_of_a_secret_is_none() -> None:
    env = {"GOOGLE_APPLICATION_CREDENTIALS": "/users/me/key.json"}
    args = ["--credentials=../key.json", "train", "--secret", "/users/me/key"]
    assert "secret-in-words" not in said(args=args, env=env)
    assert "secret-in-words" in said(args=[*args, "--password=pl4nted"])


def test_tokens_that_a_model_reads_are_no_secrets() -> None:
    words = ["--max-tokens", "4096", "--tokens=1e9", "--num-tokens", "300B", "--pad-token", "<pad>"]
    words += ["--pool_token", "cls", "--stop_token=end", "--stop_token", "SORT_KEY=loss"]
    env = {"TOKENIZERS_PARALLELISM": "false", "SEED": "1", "SORT_KEY": "loss", "MAX_TOKENS": "9"}
    env |= {"HF_TOKEN_PATH": ".cache/token", "SSL_KEY_FILE": "$HOME/key.pem"}
    assert "secret-in-words" not in said(args=words, env=env)


@pytest.mark.parametrize("text", ["$STAGE_DATA/train", "${STAGE_DATA}", "out=${data.root}", "^x$"])
def test_arguments_that_are_expanded_or_the_programs_own_are_not_warned_about(text: str) -> None:
    assert "literal-argument" not in said(args=[text], stage={"DATA": "data"})


@pytest.mark.parametrize("account", ["OPEN-30-12", "open-30-12"])
def test_an_account_of_karolina_may_be_written_in_capitals(account: str) -> None:
    launch = launched("karolina", "qgpu", account=account)
    assert "account" not in {one.rule for one in findings(launch, site("karolina"))}
    assert site("karolina").account.in_path(account) == "open-30-12"
