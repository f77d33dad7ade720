"""Order of the operators of a foreign graph: each after those whose results it uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ixion.base.errors import ModelFormatError, nearest

#: Names that are compared with an unknown one.
_MOST_NAMES = 5000


def in_order(
    uses: Sequence[Iterable[str]],
    makes: Sequence[Iterable[str]],
    given: Iterable[str],
    place: Callable[[int], str],
) -> list[int]:
    """Indices of operators such that every name is made before it is used; the file's order is kept
    where it can be.

    `uses[i]` and `makes[i]` are the names operator i reads and defines, `given` those defined from
    the start, `place(i)` words for an error. ModelFormatError if a name is defined twice, used but
    never defined, or defined out of itself (a cycle). Linear (Kahn's algorithm; a file already in
    order, which is nearly every file, takes one pass).
    """
    maker = _makers(makes, given, place)
    waiting: list[int] = []
    users: dict[int, list[int]] = {}
    order: list[int] = []
    done = [False] * len(uses)
    for index, names in enumerate(uses):
        sources = {maker[name] for name in names if _known(name, maker, index, place)}
        missing = [source for source in sources if source >= 0 and not done[source]]
        waiting.append(len(missing))
        for source in missing:
            users.setdefault(source, []).append(index)
        if not missing:
            _release(index, users, waiting, done, order)
    if len(order) != len(uses):
        stuck = next(index for index, finished in enumerate(done) if not finished)
        raise ModelFormatError(
            "the graph has a cycle: an operator depends on its own result",
            where=place(stuck),
            hint="a network file holds an acyclic graph; export it again",
        )
    return order


def _makers(
    makes: Sequence[Iterable[str]], given: Iterable[str], place: Callable[[int], str]
) -> dict[str, int]:
    maker = dict.fromkeys(given, -1)
    for index, names in enumerate(makes):
        for name in names:
            if name in maker:
                raise ModelFormatError(
                    f"the value {name!r} is defined twice",
                    where=place(index),
                    hint="each value has one operator that makes it; export the model again",
                )
            maker[name] = index
    return maker


def _known(name: str, maker: dict[str, int], index: int, place: Callable[[int], str]) -> bool:
    if name in maker:
        return True
    near = nearest(name, list(maker)[:_MOST_NAMES])
    raise ModelFormatError(
        f"the value {name!r} is used but nothing makes it",
        where=place(index),
        found=f"nearest name {near!r}" if near else None,
        hint="the graph is incomplete: the file was cut or edited; export it again",
    )


def _release(
    first: int, users: dict[int, list[int]], waiting: list[int], done: list[bool], order: list[int]
) -> None:
    ready = [first]
    while ready:
        index = ready.pop()
        done[index] = True
        order.append(index)
        for user in users.pop(index, ()):
            waiting[user] -= 1
            if waiting[user] == 0:
                ready.append(user)
