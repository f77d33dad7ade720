from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ixion.runtime.memory import Room, lower_bound, plan


def storage(nbytes: int, first: int, last: int) -> Room:
    return Room("arena", nbytes, first=first, last=last)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 5000), st.integers(0, 20), st.integers(0, 6)), max_size=30)
)
def test_rooms_alive_together_never_overlap(rows: list[tuple[int, int, int]]) -> None:
    storages = [storage(n, first, first + extra) for n, first, extra in rows]
    size = plan(storages)
    assert size >= lower_bound(storages)
    for i, a in enumerate(storages):
        assert a.offset % 64 == 0
        assert a.offset + a.nbytes <= size
        for b in storages[:i]:
            together = a.first <= b.last and b.first <= a.last
            apart = a.offset + a.nbytes <= b.offset or b.offset + b.nbytes <= a.offset
            assert apart or not together


def test_a_chain_of_equal_tensors_needs_two() -> None:
    storages = [storage(1000, i, i + 1) for i in range(10)]
    assert plan(storages) == lower_bound(storages) == 2 * 1024
