"""The price of any job that can be asked for: finite, never negative, and more for more."""

from hypothesis import assume, given
from hypothesis import strategies as st

from lumitui.app.job.launch import Price
from lumitui.app.job.spec import changed
from lumitui.app.launch.job_price import price_of
from lumitui.app.launch.layout import layout_of
from lumitui.app.launch.placement import placement_of
from lumitui.remote.site.errors import InputError
from tests.support.jobs.sites.lumi_job import JOB, LUMI


def priced(partition: str, nodes: int, gpus: int, time: str, memory: str | None) -> Price | None:
    changes = {"partition": partition, "nodes": nodes, "gpus_per_node": gpus, "time": time}
    try:
        spec = changed(JOB, changes | ({"memory": memory} if memory else {}), "t")
        place = placement_of(spec, LUMI)
        return price_of(place, layout_of(place))
    except InputError:
        return None


@given(
    st.sampled_from(sorted(LUMI.partitions)),
    st.integers(1, 10_000),
    st.integers(1, 8),
    st.tuples(st.integers(0, 9999), st.integers(0, 9_999_999)),
    st.none() | st.from_regex(r"\A[0-9]{1,9}[KMGT]?\Z"),
)
def test_every_price_is_a_number_that_grows_with_the_nodes(
    partition: str, nodes: int, gpus: int, time: tuple[int, int], memory: str | None
) -> None:
    limit = f"{time[0]}-{time[1]}:00:01"
    one, many = (priced(partition, count, gpus, limit, memory) for count in (1, nodes))
    assume(one is not None and many is not None)
    assert one is not None and many is not None
    assert 0 <= one.amount <= many.amount < 1e21 and 0 <= one.per_hour <= many.per_hour
