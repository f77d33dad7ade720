import pytest

from ixion.base.errors import ModelFormatError
from ixion.frontend.order import in_order


def order(uses, makes, given=("x",)):
    return in_order(uses, makes, given, lambda i: f"node {i}")


def test_file_order_is_kept():
    assert order([["x"], ["a"], ["x"]], [["a"], ["b"], ["c"]]) == [0, 1, 2]


def test_users_wait_for_what_they_use():
    got = order([["b"], ["a", "a"], ["x"]], [["c"], ["b"], ["a"]])
    assert got.index(2) < got.index(1) < got.index(0)


def test_a_long_chain_written_backwards():
    n = 100_000
    uses = [[f"v{i - 1}"] if i else ["x"] for i in reversed(range(n))]
    makes = [[f"v{i}"] for i in reversed(range(n))]
    assert order(uses, makes) == list(reversed(range(n)))


@pytest.mark.parametrize("uses", [[["a"]], [["b"], ["a"]]])
def test_cycles(uses):
    makes = [["a"], ["b"]][: len(uses)]
    with pytest.raises(ModelFormatError, match="cycle"):
        order(uses, makes)


def test_a_name_nothing_makes():
    with pytest.raises(ModelFormatError, match="nothing makes it") as caught:
        order([["inptu"]], [["a"]], ["input"])
    assert "node 0" in str(caught.value)


def test_a_name_made_twice():
    with pytest.raises(ModelFormatError, match="twice"):
        order([["x"], ["x"]], [["a"], ["a"]])
