"""The node map shows each core once, with its rank, in any width and without colours."""

import pytest

from lumitui.app.launch.compose import compose
from lumitui.app.launch.draft.node_map import (
    MapLine,
    gpu_word,
    measured_map,
    node_map,
    node_map_lines,
)
from tests.support.jobs.sites.lumi_job import LUMI, job


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
    parts = [(part.text, part.rank, part.is_core) for part in lines[3]]
    assert parts == [("", None, False), ("  0-7   ", None, False), ("x", None, True),
                     ("4444444", 4, True), (" GCD4", 4, False)]  # fmt: skip


def test_a_measured_node_shows_what_its_ranks_found() -> None:
    shown = drawn(node_map_lines(measured_map(LUMI, "nid1", {0: "1-3", 2: "9"}), 80))
    assert shown.startswith("nid1, as measured")
    assert "  0-7   x000.... GPU0" in shown and "  8-15  x2...... GPU2" in shown
