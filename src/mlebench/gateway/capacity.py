"""What the calls of a run may take together: memory, and turns at the endpoint. An agent that floods only waits longer.

Memory is reserved by the sizes of requests and answers before they are parsed; the figures below are measured.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

MEMORY = 2 << 30  # bytes, for all calls in progress
BYTE = 8  # bytes held for one of a request: as it came, as text of up to four bytes a character, and as it is sent
VALUE = 200  # bytes for a JSON value, parsed and checked
STREAMED = 25  # bytes for one of a stream, until it is measured what is held of it
CALLS = 64  # at the endpoint at once
WAITING = 128  # calls that wait for their turn
FLOOD = 20  # calls within `WINDOW`; a provider may refuse more, and that is the agent's doing
WINDOW = 60.0  # seconds
LARGE = 200_000  # bytes; a provider may refuse a request of this size because of its size


class OverloadedError(Exception):
    """The calls in progress take all that they may."""


class MemoryPool:
    """What is left for calls in progress."""

    def __init__(self, most: int = MEMORY):
        self.left = most


class CallMemory:
    """The memory of one call."""

    def __init__(self, memory: MemoryPool):
        self._memory, self._held, self._stream = memory, 0, 0

    def take(self, amount: int) -> None:
        if amount > self._memory.left:
            raise OverloadedError
        self._memory.left -= amount
        self._held += amount

    def take_bytes(self, count: int) -> None:
        self.take(BYTE * count)

    def take_values(self, count: int) -> None:
        self.take(VALUE * count)

    def take_stream(self, count: int) -> None:
        """For the next bytes of a stream."""
        self.take(STREAMED * count)
        self._stream += STREAMED * count

    def settle_stream(self, values: int, characters: int) -> None:
        """What is really held of a stream so far."""
        amount = VALUE * values + 4 * characters
        self.take(amount - self._stream)
        self._stream = amount

    def release(self) -> None:
        self._memory.left += self._held
        self._held = 0


class CallQueue:
    """Who may call the endpoint. Each time it answers that calls are too many, half as many may be there at once."""

    def __init__(self, most: int = CALLS, waiting: int = WAITING):
        self._most, self._most_waiting = most, waiting
        self._limit, self._running, self._waiting = most, 0, 0
        self._changed = asyncio.Event()
        self._begun: deque[float] = deque(maxlen=FLOOD)
        self._last_flood = -2 * WINDOW

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """OverloadedError if too many wait already."""
        self._note_call(time.monotonic())
        if self._running >= self._limit and self._waiting >= self._most_waiting:
            raise OverloadedError
        self._waiting += 1
        try:
            while self._running >= self._limit:
                await self._changed.wait()
        finally:
            self._waiting -= 1
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            self._notify()

    def answered(self) -> None:
        self._limit = min(self._most, self._limit + 1)
        self._notify()

    def refused(self) -> None:
        self._limit = max(1, self._limit // 2)

    def is_flooded(self, since: float) -> bool:
        """Whether, since a moment or shortly before it, the agent made unusually many calls."""
        return self._last_flood > since - WINDOW

    def _note_call(self, now: float) -> None:
        if len(self._begun) == FLOOD and now - self._begun[0] < WINDOW:
            self._last_flood = now
        self._begun.append(now)

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
