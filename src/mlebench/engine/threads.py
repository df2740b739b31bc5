"""How many threads work on one competition: a setting of the process, made by whoever runs several of them."""

LEAST = 2
_threads = LEAST


def threads() -> int:
    return _threads


def use_threads(count: int) -> None:
    """Work with so many from now on; with fewer than two, reading would wait for writing."""
    global _threads
    _threads = max(LEAST, count)
