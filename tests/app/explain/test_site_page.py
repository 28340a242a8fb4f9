"""A site's page: every site's facts, within 80 columns, with a mark at what nobody checked."""

from datetime import date

import pytest

from lumitui.app.explain.site_page import bill, limits, page, sections
from lumitui.remote.site.partition import NodeBilling, Partition, SizeLimit, SliceBilling
from lumitui.remote.site.sites import BUILT_IN, Sites

SITES = Sites([BUILT_IN])
DAY = date(2026, 11, 22)


@pytest.mark.parametrize("name", SITES.names())
def test_a_page_fits_80_columns_and_names_every_partition_and_container(name: str) -> None:
    site = SITES.load(name)
    text = page(site, DAY)
    assert max(map(len, text.splitlines())) <= 80
    for word in (*site.partitions, *site.containers, site.billing_unit, site.title):
        assert word in text
    narrow = page(site, DAY, 40)
    assert all(note.split()[0] in narrow for note in site.notes)


def test_what_nobody_checked_is_marked_and_listed() -> None:
    lumi = SITES.load("lumi")
    text = page(lumi, DAY)
    assert "every 45 s ?" in text
    assert "jobs get     longest" in text and "whole nodes  2-00:00:00" in text
    assert "?: unverified on the site." in text
    assert "Unverified on the site: quota, budget, poll_seconds" in text
    assert "  0    c1   3       49-55\n" in text
    two = lumi.model_copy(
        update={
            "folders": {"HOME": "/home/x", "SCRATCH": "/scratch/x"},
            "unverified": ("folders.SCRATCH", "partitions.small-g.billing.per_slice_hour"),
        }
    )
    text = page(two, DAY)
    assert "$HOME /home/x, $SCRATCH /scratch/x ?" in text
    assert text.count(" ?") == 2  # the folder, and the price of small-g
    sure = lumi.model_copy(update={"unverified": ()})
    assert "?" not in page(sure, DAY).replace("hold?", "")
    assert "Unverified" not in [part.heading for part in sections(sure, DAY)]


def test_a_closed_site_says_since_when_and_what_to_use() -> None:
    text = page(SITES.load("mahti"), DAY)
    assert "It has run no jobs since 2026-08-31; use roihu." in text
    assert "stops running jobs on 2026-08-31" in page(SITES.load("mahti"), date(2026, 8, 1))
    assert "`lumitui site check" in " ".join(
        text.split()
    )  # how to learn which cores are near to which GPU


def test_limits_that_depend_on_size_are_told() -> None:
    item = Partition(
        max_time="12:00:00",
        max_time_of=(SizeLimit(nodes=91, max_time="2:00:00"),),
        max_node_minutes=90,
        max_nodes=9408,
        allocation="node",
        billing=NodeBilling(per_node_hour=1),
    )
    assert limits(item) == "at most 2:00:00 on up to 91 nodes, at most 90 node-minutes"
    site = SITES.load("lumi")
    assert bill(site, item) == "1 per node"
    largest = SliceBilling(cores=1, memory_gib=1e6, gpus=0.1, per_slice_hour=1)
    assert bill(site, item.model_copy(update={"billing": largest})) == "1 for each 1 core, 0.1 GPUs"


def test_what_a_partition_needs_is_a_part_of_its_line() -> None:
    pages = [" ".join(page(SITES.load(name), DAY).split()) for name in SITES.names()]
    assert any(
        "request access once from support@it4i.cz; larger jobs go to" in text for text in pages
    )
    assert not any(".;" in text for text in pages)
