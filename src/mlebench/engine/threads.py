"""How many threads work on one competition: a process-wide setting, made by the code that runs several at once."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

LEAST = 2
_threads = LEAST
Item = TypeVar("Item")
Result = TypeVar("Result")


def threads() -> int:
    return _threads


def use_threads(count: int) -> None:
    """Use this many from now on; with fewer than two, reading would wait for writing."""
    global _threads
    _threads = max(LEAST, count)


def in_order(items: Iterable[Item], work: Callable[[Item], Result]) -> Iterator[tuple[Item, Result]]:
    """Work on several items at a time and yield the results in order; at most `threads()` + 1 results are pending."""
    with ThreadPoolExecutor(threads()) as pool:
        pending: deque[tuple[Item, Future[Result]]] = deque()
        try:
            for item in items:
                pending.append((item, pool.submit(work, item)))
                if len(pending) > threads():
                    item, future = pending.popleft()
                    yield item, future.result()
            while pending:
                item, future = pending.popleft()
                yield item, future.result()
        finally:
            for _, future in pending:
                future.cancel()
