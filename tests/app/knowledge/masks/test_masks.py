"""What `--cpu-bind` gives each task is read as srun reads it, and its mistakes are named."""

import pytest

from lumitui.app.knowledge.masks import MaskMistake, Starter, explained, mistakes, read_bind
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.sites import BUILT_IN, Sites
from tests.support.rules.lumi_masks import COUNTED_UP, LUMI

SITES = Sites([BUILT_IN])
ONE_CORE = "map_cpu:49,57,17,25,1,9,33,41"  # LUMI's documentation, distribution and binding
SIX_CORES = (
    "7e000000000000,7e00000000000000,7e0000,7e000000,7e,7e00,7e00000000,7e0000000000"  # there, too
)


def judged(
    text: str, site: str = "lumi", tasks: int = 8, starter: Starter = "srun"
) -> list[MaskMistake]:
    """Return what is wrong with the lists in `text`."""
    node = SITES.load(site).node
    binds = explained(text)
    gpus = next((one for one in binds if one.of_gpus), None)
    return [
        mistake
        for bind in binds
        for mistake in mistakes(
            bind, node, tasks=tasks, starter=starter, gpus=None if bind is gpus else gpus
        )
    ]


def ids(text: str, site: str = "lumi", tasks: int = 8, starter: Starter = "srun") -> list[str]:
    """Return the ids of the mistakes."""
    return [one.id for one in judged(text, site, tasks, starter)]


@pytest.mark.parametrize(
    "text",
    [
        f"mask_cpu:{LUMI}",
        LUMI,
        f"--cpu-bind=v,mask_cpu={LUMI}",
        f"srun --cpu-bind=mask_cpu:{LUMI}",
        f"mask_cpu:{SIX_CORES}",
        SIX_CORES,
    ],
)
def test_lists_of_a_sites_own_guide_have_no_mistake(text: str) -> None:
    assert judged(text) == []


@pytest.mark.parametrize(
    ("text", "wrong", "tasks"),
    [
        (LUMI.replace("fe", "ff"), "mask-reserved", (0, 1, 2, 3, 4, 5, 6, 7)),
        (COUNTED_UP, "mask-order", (0, 1, 4, 5, 6, 7)),
        (LUMI.replace("00fe000000000000", "0000000000000000"), "mask-empty", (0,)),
        (",".join(LUMI.split(",")[:4]), "mask-count", (4, 5, 6, 7)),
        (LUMI.replace("0xfe00000000000000", "0x00fe000000000000"), "mask-overlap", (0, 1)),
        ("mask_cpu:0xfg,0xfe", "mask-unreadable", (0,)),
        ("0xzz,0xfe", "mask-unreadable", (0,)),
        ("map_cpu:1,,9", "mask-unreadable", (1,)),
        (ONE_CORE.replace("41", "131"), "mask-outside", (7,)),
        (ONE_CORE.replace("41", "40"), "mask-reserved", (7,)),
        ("map_gpu:0,1,2,3,4,5,6,8", "gpu-outside", (7,)),
        ("map_gpu:0,1,2,3,4,5,6,6", "gpu-overlap", (6, 7)),
    ],
)
def test_each_mistake_is_named_with_its_tasks(
    text: str, wrong: str, tasks: tuple[int, ...]
) -> None:
    assert tasks in [one.tasks for one in judged(text) if one.id == wrong]


@pytest.mark.parametrize(
    ("text", "tasks", "do"),
    [
        (LUMI.replace("0xfe00000000000000", "0xff00000000000000"), 8,
         "Omit core 56: give task 1 the cores 57-63"),
        (ONE_CORE.replace("41", "40"), 8, "Omit core 40: give task 7 the cores 41-47"),
        ("0xff00000000000000,0xfe0000", 2, "Omit core 56: give task 0 the cores 57-63"),
        (f"--cpu-bind={COUNTED_UP.replace('0xfe00000000000000', '0xff00000000000000')} "
         "--gpu-bind=map_gpu:4,5,2,3,6,7,0,1", 8, "Omit core 56: give task 7 the cores 57-63"),
        (LUMI.replace("fe", "ff"), 8, "Omit cores 0,8,16,24,32,40,48,56: give task 0 the cores "
         "49-55, and so on"),
    ],
)  # fmt: skip
def test_reserved_cores_are_replaced_by_the_cores_of_the_tasks_own_gpu(
    text: str, tasks: int, do: str
) -> None:
    listed = f"{do}; `lumitui bind SITE` prints each GPU's mask."
    assert [one.do for one in judged(text, tasks=tasks) if one.id == "mask-reserved"] == [listed]


@pytest.mark.parametrize("wrong", ["0xfe00", "0x0", "0xfe00000000000000"])
def test_each_mistake_in_one_mask_names_the_command_that_prints_the_right_one(wrong: str) -> None:
    found = judged(LUMI.replace("0x0000000000fe0000", wrong))
    assert found and all("`lumitui bind SITE` prints" in one.do for one in found)


def test_more_entries_than_tasks_are_only_noted() -> None:
    assert [(one.id, one.severity) for one in judged(LUMI, tasks=2)] == [("mask-count", "note")]


def test_the_second_hardware_thread_of_a_core_is_that_core() -> None:
    both = ",".join(f"{int(one, 16) | int(one, 16) << 64:#x}" for one in LUMI.split(","))
    assert ids(both) == []
    assert ids(both.replace("fe0000", "ff0000", 1)) == ["mask-reserved"]


def test_a_list_of_gpus_says_which_gpu_a_task_is_near_to() -> None:
    in_order = "map_cpu:1,9,17,25,33,41,49,57"
    assert "mask-order" in ids(in_order)
    assert ids(f"--cpu-bind={in_order} --gpu-bind=map_gpu:4,5,2,3,6,7,0,1") == ["mask-few"]


def test_cores_in_the_gpus_own_domain_are_a_note_and_not_a_warning() -> None:
    swapped = SIX_CORES.replace(
        "7e000000000000,7e00000000000000", "7e00000000000000,7e000000000000"
    )
    found = judged(swapped)
    assert [(one.severity, one.tasks) for one in found] == [("note", (0, 1))]


def test_torchruns_workers_must_fit_the_one_mask_that_counts() -> None:
    assert ids(LUMI, starter="torchrun") == ["mask-torchrun"]
    assert ids("0xfefefefefefefefe", starter="torchrun") == []
    assert "mask-overlap" not in ids("0xfefefefefefefefe", tasks=1)


def test_the_list_of_another_sites_nodes_is_found_out() -> None:
    assert "mask-outside" in ids("map_cpu:0,20,40,100", site="mn5", tasks=4)
    assert "mask-order" in ids(",".join(LUMI.split(",")[:4]), site="mn5", tasks=4)


def test_cores_near_several_gpus_are_not_said_to_be_far_from_their_own() -> None:
    assert ids("0xfefefefefefefefe", tasks=1) == []
    orders = {
        masks: [one.message for one in judged(masks, tasks=2) if one.id == "mask-order"]
        for masks in ("0xfe,0xfe00", "0xfefefefefefefefe,0xfefefefefefefefe")
    }
    far, wide = orders.values()
    assert "crosses the node" in far[0]
    assert "crosses" not in wide[0] and "cores near other GPUs" in wide[0]


def test_a_list_that_is_too_short_is_named() -> None:
    lists = "--cpu-bind=map_cpu:1,9 --gpu-bind=map_gpu:4,5"
    counts = [one.message for one in judged(lists, tasks=8) if one.id == "mask-count"]
    assert [message.partition(" has")[0] for message in counts] == [
        "The list of cores",
        "The list of GPUs",
    ]


def test_a_list_with_counts_repeats_its_entries() -> None:
    bind = read_bind("quiet,mask_cpu:0x0f*2,0xf0*2")
    assert bind is not None
    assert [entry.written for entry in bind.entries] == ["0x0f", "0x0f", "0xf0", "0xf0"]


@pytest.mark.parametrize("loud", ["v", "verbose", "q", "quiet", "V", "v,quiet"])
def test_a_word_about_messages_may_be_on_either_side_of_a_list_of_cores(loud: str) -> None:
    """srun of Slurm 22.05 and 26.05 takes both; behind a list of GPUs it refuses it."""
    assert ids(f"--cpu-bind={loud},mask_cpu={LUMI}") == []
    assert ids(f"--cpu-bind=mask_cpu={LUMI},{loud}") == []
    assert ids(f"{LUMI},{loud}") == []
    assert "mask-unreadable" in ids(f"mask_cpu={LUMI},zz")
    assert {one.readable for one in explained(f"map_gpu:0,{loud}")[0].entries} == {True, False}


@pytest.mark.parametrize("text", [ONE_CORE, ONE_CORE.removeprefix("map_cpu:")])
def test_one_core_for_each_task_is_noted_and_fewer_than_requested_warned_of(text: str) -> None:
    assert [(one.id, one.severity) for one in judged(text)] == [("mask-few", "note")]
    node = SITES.load("lumi").node
    found = mistakes(explained(text)[0], node, tasks=8, cores=7)
    assert [(one.id, one.severity) for one in found] == [("mask-few", "warning")]
    assert "1 core, but the job requests 7" in found[0].message
    assert mistakes(explained(text)[0], node, tasks=8, cores=1) == ()
    assert mistakes(explained(SIX_CORES)[0], node, tasks=8, cores=7) == ()


@pytest.mark.parametrize("value", ["cores", "none", "v", "mask_cpu:$MASKS", "closest", ""])
def test_what_lists_nothing_is_read_as_nothing(value: str) -> None:
    assert read_bind(value) is None


@pytest.mark.parametrize("text", ["", "cores", "--cpu-bind=cores", "$CPU_BIND", "'", "rank 0"])
def test_what_has_no_list_is_refused_with_what_to_type(text: str) -> None:
    with pytest.raises(InputError, match="not a list of masks"):
        explained(text)
