from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from support.endpoints import QUICK, Endpoint, Front, NewFront, access_to, endpoint, front_of

from mlebench.gateway.upstream import Timeouts


@pytest.fixture
def server() -> Iterator[Endpoint]:
    """A model's endpoint."""
    with endpoint() as found:
        yield found


@pytest.fixture
def front(server: Endpoint, tmp_path: Path) -> Iterator[NewFront]:
    """Makes a gateway in front of it; options are those of planning."""
    with ExitStack() as stack:

        def make(timing: Timeouts = QUICK, seconds: float = 100, **options: Any) -> Front:
            return stack.enter_context(front_of(access_to(server, **options), tmp_path, timing, seconds))

        yield make
