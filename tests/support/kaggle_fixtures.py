"""The real client against a server on loopback: what tests of downloads share."""

import io
import os
import random
import zipfile
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from support.fake_kaggle import KEY, USER, FakeKaggle


def archive_of(seed: int = 0) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("train.csv", random.Random(seed).randbytes(2_500_000))
    return buffer.getvalue()


@pytest.fixture
def kaggle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeKaggle]:
    """The server; the client talks only to it, and finds no login of the user running this."""
    home = tmp_path / "home"
    home.mkdir()
    for name in [name for name in os.environ if name.startswith("KAGGLE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("KAGGLE_CONFIG_DIR", str(home / ".kaggle"))
    monkeypatch.setenv("KAGGLE_API_ENVIRONMENT", "LOCALHOST")
    monkeypatch.setenv("NO_PROXY", "*")
    with redirect_stdout(io.StringIO()):  # it makes requests when it is imported
        from kaggle.api.kaggle_api_extended import KaggleApi
        from kagglesdk import kaggle_env
    # Read when the client is imported, once for all tests.
    monkeypatch.setattr(KaggleApi, "args", ["--local"])
    monkeypatch.setattr(KaggleApi, "config", str(home / ".kaggle" / "kaggle.json"))
    with FakeKaggle(archive_of()).serving() as server:
        for target in kaggle_env._env_to_endpoint:  # loopback knows no free port
            monkeypatch.setitem(kaggle_env._env_to_endpoint, target, server.url)
        yield server


@pytest.fixture
def login(kaggle: FakeKaggle, tmp_path: Path) -> Path:
    """A kaggle.json."""
    path = tmp_path / "home" / ".kaggle" / "kaggle.json"
    path.parent.mkdir(exist_ok=True)
    path.touch(0o600)
    path.write_text(f'{{"username": "{USER}", "key": "{KEY}"}}')
    return path


class Waits(list[float]):
    """Replaces sleeping, and remembers for how long."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)
