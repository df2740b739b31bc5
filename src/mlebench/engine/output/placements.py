"""Which raw files get which names. There may be millions, so they are kept as packed text, not as an object each."""

from collections.abc import Iterator
from heapq import merge
from itertools import islice

from mlebench.engine.progress import SILENT_STAGE, Stage
from mlebench.engine.trees import Tree, TreeFile

RUN = 1 << 16  # files sorted at a time
BLOCK = 1 << 10  # files packed together: while runs are merged, one block of each is unpacked
_Entry = tuple[str, str, str]  # new name, number of the tree, name in the tree
Placement = tuple[str, Tree, str]  # new name, tree, name in the tree


class Placements:
    """Raw files and their new names; they come sorted by new name."""

    def __init__(self, planning: Stage = SILENT_STAGE) -> None:
        self._planning = planning
        self._trees: dict[Tree, str] = {}  # each has a number
        self._runs: list[list[bytes]] = []  # sorted blocks
        self._latest: list[_Entry] = []
        self._packed = 0

    def __len__(self) -> int:
        return self._packed + len(self._latest)

    def add(self, name: str, file: TreeFile) -> None:
        number = self._trees.setdefault(file.tree, str(len(self._trees)))
        self._latest.append((name, number, file.name))
        if len(self._latest) == RUN:
            self._packed += RUN
            self._runs.append(_pack(self._latest))
            self._latest = []
            self._planning.advance(sum(map(len, self._runs[-1])))

    def __iter__(self) -> Iterator[Placement]:
        trees = list(self._trees)
        for name, number, source in merge(*map(_unpack, self._runs), sorted(self._latest)):
            yield name, trees[int(number)], source


def _pack(entries: list[_Entry]) -> list[bytes]:
    ordered = iter(sorted(entries))
    blocks = iter(lambda: list(islice(ordered, BLOCK)), [])
    return ["\0".join(part for entry in block for part in entry).encode("utf-8", "surrogatepass") for block in blocks]


def _unpack(blocks: list[bytes]) -> Iterator[_Entry]:
    for block in blocks:
        parts = iter(block.decode("utf-8", "surrogatepass").split("\0"))
        yield from zip(parts, parts, parts, strict=True)
