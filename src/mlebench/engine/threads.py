"""How many threads work on one competition: a process-wide setting, made by the code that runs several at once."""

LEAST = 2
_threads = LEAST


def threads() -> int:
    return _threads


def use_threads(count: int) -> None:
    """Use this many from now on; with fewer than two, reading would wait for writing."""
    global _threads
    _threads = max(LEAST, count)
