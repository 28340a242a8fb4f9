"""At a site without GPUs nothing speaks of GPUs: ranks and cores are told."""

from dataclasses import replace

from lumitui.app.explain import row_words, words
from lumitui.app.history.run import Run
from lumitui.app.job.launch import RankLayout
from lumitui.app.launch.draft import job_form
from lumitui.app.launch.draft.node_map import gpu_word, node_map, node_map_lines
from lumitui.app.scale.scaling import rungs, scaling_words
from lumitui.app.scale.scaling.measured import MeasuredRun, Training
from lumitui.app.scale.scaling.study import Offer, scaling_of
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.sites import Sites
from tests.support.jobs.made_runs import a_run
from tests.support.program.home import Home

CORES = ("0", "1")


def a_cpu_run(nodes: int = 2) -> Run:
    return a_run(layout=RankLayout(nodes, 2, 2, 1, 2, True, (), CORES, on_cpu=True))


def test_no_table_and_no_sentence_names_gpus(home: Home) -> None:
    site = Sites(home.settings.profiles).load("laptop")
    run = a_cpu_run()
    map_lines = node_map_lines(node_map(site, run.layout), 80, gpu_word(site))
    drawn = ["".join(part.text for part in line) for line in map_lines]
    study = scaling_of(
        run,
        [MeasuredRun(run, Training(1000.0, 990.0, 1010.0, 50, samples=60_000, epoch=60_000))],
        [Offer(2, 4, 0.0, 3600.0, 0.0), Offer(4, 8, 0.0, 3600.0, 0.0)],
    )
    said = [
        *drawn,
        words.layout_size(run.layout),
        *(field.help for field in job_form.fields({}, site, {}, ())),
        *rungs.titles(study),
        *scaling_words.table(study).titles,
        scaling_words.basis(study),
    ]
    assert not [text for text in said if "GPU" in text or "GCD" in text], said
    assert f"2 of {site.node.gpus} ranks" in drawn[0]
    assert rungs.titles(study)[1] == "ranks" and "rank-h" in scaling_words.table(study).titles
    assert row_words.size(run) == "2x2r" and "4 ranks on CPU" in words.layout_size(run.layout)
    gpus = replace(run, layout=replace(run.layout, on_cpu=False))
    assert row_words.size(gpus) == "2x2" and gpus.layout.device.some(1) == "1 GPU"


def test_more_ranks_than_the_machine_has_are_called_ranks(home: Home) -> None:
    from lumitui.app.job.spec import parse_job
    from lumitui.app.launch.compose import compose

    site = Sites(home.settings.profiles).load("laptop")
    text = "name: a\nsite: laptop\npartition: local\ntime: '00:05:00'\nscript: a.py\n"
    try:
        compose(parse_job(f"{text}gpus_per_node: 64\n", "job"), site)
    except InputError as error:
        assert "ranks of a node" in str(error) and "GPUs" not in str(error)
    else:
        raise AssertionError("64 ranks fit")
