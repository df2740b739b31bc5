from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from conftest_run import mlebench, run, start  # noqa: F401 fixtures
from endpoints import QUICK, Endpoint, Front, access_to, endpoint, front_of


@pytest.fixture
def server() -> Iterator[Endpoint]:
    """A model's endpoint."""
    with endpoint() as found:
        yield found


@pytest.fixture
def front(server: Endpoint, tmp_path: Path) -> Iterator[Callable[..., Front]]:
    """Makes a gateway in front of it; options are those of planning."""
    with ExitStack() as stack:

        def make(timing: Any = QUICK, seconds: float = 60, **options: Any) -> Front:
            return stack.enter_context(front_of(access_to(server, **options), tmp_path, timing, seconds))

        yield make
