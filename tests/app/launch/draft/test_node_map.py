"""The node map shows each core once; `lumitui bind --explain` says what masks give each task."""

import pytest

from lumitui.app.launch.compose import compose
from lumitui.app.launch.draft.node_map import (
    MapLine,
    explain_masks,
    gpu_word,
    masks_text,
    measured_map,
    node_map,
    node_map_lines,
    rank_lines,
)
from lumitui.app.launch.layout import rank_bindings
from lumitui.remote.site.sites import BUILT_IN, Sites
from tests.support.jobs.sites.lumi_job import LUMI, job


def test_a_list_of_gpus_fails_where_it_keeps_ranks_from_each_others_gpus() -> None:
    masks = "0xfe000000000000,0xfe00000000000000"
    both = f"--cpu-bind=mask_cpu:{masks} --gpu-bind=map_gpu:0,1"
    ids = {name: [one.id for one in explain_masks(Sites([BUILT_IN]).load(name), both, tasks=2,
           starter="srun").mistakes] for name in ("lumi", "frontier")}  # fmt: skip
    assert ids["lumi"] == ["gpu-cgroup"]
    assert "gpu-cgroup" not in ids["frontier"]


def text(width: int = 80, **changes: object) -> str:
    launch = compose(job(**changes), LUMI)
    return drawn(node_map_lines(node_map(LUMI, launch.layout), width, gpu_word(LUMI)))


def drawn(lines: tuple[MapLine, ...]) -> str:
    return "\n".join("".join(part.text for part in line).rstrip() for line in lines)


def test_bound_ranks_have_their_cores_and_gpu() -> None:
    shown = text(36, nodes=4, partition="standard-g")
    assert "node x4  56 of 64 cores, 8 of 8 GPUs" in shown
    assert "  0-7   x4444444 GCD4" in shown and " 56-63  x1111111 GCD1" in shown
    assert "32 ranks: rank = node x 8 + the\ndigit" in shown


def test_each_rank_of_a_node_has_a_line_with_its_cores_and_their_mask() -> None:
    layout = compose(job(partition="standard-g"), LUMI).layout
    heading, *lines = drawn(rank_lines(LUMI, layout, 80)).split("\n")
    assert heading.split() == ["rank", "GCD", "NUMA", "cores", "mask"]
    assert [line.split() for line in lines][:2] == [
        ["0", "GCD0", "3", "49-55", "0x00fe000000000000"],
        ["1", "GCD1", "3", "57-63", "0xfe00000000000000"],
    ]
    shared = compose(job(partition="small-g", gpus_per_node=2), LUMI).layout
    assert rank_lines(LUMI, shared, 80) == ()


def test_a_wide_map_has_several_columns() -> None:
    shown = text(90, partition="standard-g")
    assert "x4444444 GCD4    24-31  x3333333 GCD3    48-55  x0000000 GCD0\n" in shown
    assert "rank = node" not in shown


def test_what_is_not_promised_says_why() -> None:
    shared = text(partition="small-g", gpus_per_node=2)
    assert "The cores are not planned: nodes are shared, and Slurm chooses the cores." in shared
    assert "  0-7   x......." in shared
    torchrun = text(partition="standard-g", launcher="torchrun")
    assert "* shared" in torchrun and "x*******" in torchrun


@pytest.mark.parametrize("width", [30, 40, 80, 200])
def test_it_fits_its_width(width: int) -> None:
    for line in text(width).splitlines()[3:11]:
        assert len(line) <= width


def test_each_rank_s_letters_are_parts_of_their_own_so_that_they_have_its_colour() -> None:
    lines = node_map_lines(node_map(LUMI, compose(job(), LUMI).layout), 30, "GCD")
    parts = [(part.text, part.rank) for part in lines[3]]
    assert parts == [
        ("", None), ("  0-7   ", None), ("x", None), ("4444444", 4), (" GCD4", 4),
    ]  # fmt: skip


def test_a_measured_node_shows_what_its_ranks_found() -> None:
    shown = drawn(node_map_lines(measured_map(LUMI, "nid1", {0: "1-3", 2: "9"}), 80))
    assert shown.startswith("nid1, as measured")
    assert "  0-7   x000.... GPU0" in shown and "  8-15  x2...... GPU2" in shown


SITES = Sites([BUILT_IN])
KNOWN = [name for name in SITES.names() if SITES.load(name).node.gpu_cores and name != "laptop"]


@pytest.mark.parametrize("name", KNOWN)
def test_what_bind_prints_for_a_site_has_nothing_wrong_there(name: str) -> None:
    site = SITES.load(name)
    masks = ",".join(one.mask for one in rank_bindings(site.node, site.node.gpus))
    found = explain_masks(site, f"srun --cpu-bind=v,mask_cpu={masks}", tasks=None, starter="srun")
    assert found.mistakes == ()
    assert [row.near_gpus for row in found.tasks] == [(gpu,) for gpu in range(site.node.gpus)]
    assert "No mistakes found: each task" in masks_text(site, found)


def test_a_wrong_order_is_drawn_and_said_at_its_tasks() -> None:
    site = SITES.load("lumi")
    text = masks_text(site, explain_masks(site, "map_cpu:1,57", tasks=2, starter="srun"))
    assert "   0  1          0         4         0  <- mask-order" in text
    assert "  0-7      x 0 . . . . . ." in text
    assert "<- mask-order" not in text.split("   1  57")[1]
    assert "nodes are shared in small-g, dev-g" in text


def test_reserved_cores_fail_and_an_unknown_node_is_said_to_be_unknown() -> None:
    lumi, mahti = SITES.load("lumi"), SITES.load("mahti")
    assert explain_masks(lumi, "0xff,0xff00", tasks=2, starter="srun").fails
    found = explain_masks(mahti, "0xff,0xff00", tasks=2, starter="srun")
    assert not found.fails
    assert "the cores nearest to each GPU are not published" in masks_text(mahti, found)


def test_torchrun_is_one_task_that_has_all_gpus() -> None:
    found = explain_masks(SITES.load("lumi"), "0xfe,0xfe00", tasks=None, starter="torchrun")
    assert [(row.gpus, row.wrong) for row in found.tasks] == [
        (tuple(range(8)), ("mask-torchrun",)),
    ]


def test_gpus_alone_bind_no_cores() -> None:
    site = SITES.load("mahti")
    found = explain_masks(site, "map_gpu:0,1", tasks=2, starter="srun")
    assert "it binds no cores" in masks_text(site, found)


@pytest.mark.parametrize(
    ("masks", "fails"),
    [
        ("mask_cpu:" + ",".join(["0xfe"] * 8), True),
        ("mask_cpu:0xfe", True),
        ("map_gpu:0,0,0,0,0,0,0,0", True),
        ("map_gpu:0,1,2,3,4,5,6,7", True),
        ("map_cpu:49,57,17,25,1,9,33,41", False),
        ("map_cpu:1,9,17,25,33,41,49,57", False),
    ],
)
def test_masks_fail_if_ranks_share_cores_or_gpus(masks: str, fails: bool) -> None:
    assert explain_masks(SITES.load("lumi"), masks, tasks=None, starter="srun").fails is fails


def test_options_without_a_list_are_named_and_what_slurm_chooses_is_left_open() -> None:
    site = SITES.load("lumi")
    masks = "--cpu-bind=map_cpu:1,9 --cpus-per-task=7 --gpus-per-task=1 --gpu-bind=closest"
    found = explain_masks(site, masks, tasks=2, starter="srun")
    text = masks_text(site, found)
    assert "Not explained: --gpus-per-task=1, --gpu-bind=closest. Slurm chooses the GPUs" in text
    assert [row.gpus for row in found.tasks] == [(), ()]
    assert [one.id for one in found.mistakes] == ["mask-few"]
    assert "the job requests 7" in found.mistakes[0].message


def test_a_type_that_ends_with_a_digit_is_not_joined_to_a_rank() -> None:
    node = LUMI.node.model_copy(update={"gpu": "a100"})  # A1000 is another card
    assert gpu_word(LUMI.model_copy(update={"node": node})) == "GPU"
    assert gpu_word(LUMI) == "GCD"


def test_the_advice_names_the_site_of_the_masks() -> None:
    site = SITES.load("lumi")
    text = masks_text(site, explain_masks(site, "map_cpu:1,9", tasks=2, starter="srun"))
    assert "that `lumitui bind lumi` prints" in text and "bind SITE" not in text
