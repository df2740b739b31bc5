import logging
import os
import random
import shutil
import signal
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from support.golden_cases import CASES, DEFAULT_TWIN, golden_cases, golden_figures
from support.property_examples import ExampleHashes, ignore_local_constants, seed_by_name

from mlebench.contract import CompetitionCase
from mlebench.contract.checking import twin_named
from mlebench.data.pipeline import prepare
from mlebench.data.sources import TwinSource
from mlebench.registry import Competition, Registry

pytest_plugins = ["support.browsers", "support.kaggle_fixtures", "support.run_fixtures", "support.web_fixtures"]

# A busy machine is not a failure, and a change gets the same verdict everywhere: the suite always tries the same
# examples (`pytest_configure` sees to the rest). `make explore` looks for new ones.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.register_profile("explore", settings.get_profile("suite"), derandomize=False, max_examples=3000)
settings.load_profile("suite")


def pytest_sessionstart() -> None:
    """A shell that starts us in the background ignores Ctrl-C for us, and everything we start would inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--cases",
        choices=CASES,
        default="two",
        help="golden cases of each competition; `one` leaves out tests that compare our results with each other",
    )
    parser.addoption("--shuffle-files", type=int, metavar="SEED", help="run the files of tests in another order")
    parser.addoption(
        "--example-hashes", type=Path, metavar="FILE", help="append a hash of the examples of each property test"
    )


@pytest.hookimpl(trylast=True)  # hypothesis loads the profile of the command line first
def pytest_configure(config: pytest.Config) -> None:
    if settings().derandomize:
        ignore_local_constants()
    if file := config.getoption("--example-hashes"):
        config.pluginmanager.register(ExampleHashes(file))


@pytest.hookimpl(wrapper=True, trylast=True)  # hypothesis sets its own seed first
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    seed_by_name(item)
    return (yield)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if (seed := config.getoption("--shuffle-files")) is not None:
        files = sorted({item.path for item in items})
        random.Random(seed).shuffle(files)
        items.sort(key=lambda item: files.index(item.path))
    if config.getoption("--cases") == "one":
        kept: list[pytest.Item] = []
        left_out: list[pytest.Item] = []
        for item in items:
            (left_out if "competition_id" in getattr(item, "fixturenames", ()) else kept).append(item)
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


def pytest_collection_finish(session: pytest.Session) -> None:
    """Tests of one group share what one of them builds; on two processes they would get in each other's way."""
    if session.config.getoption("loadgroup", default=False):  # of a process of pytest-xdist
        grouped = [item for item in session.items if item.get_closest_marker("xdist_group")]
        if not all("@" in item.nodeid.rpartition("]")[2] for item in grouped):
            raise pytest.UsageError("this pytest-xdist does not keep groups together under this pytest")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`case`: golden cases of every competition. `twin`, `competition_id`: every competition once.

    `corrected`: every competition that has profile v2.
    """
    cases = golden_cases(CASES[str(metafunc.config.getoption("--cases"))])
    for fixture, some in (("case", cases), ("twin", [case for case in golden_cases() if case[1] == DEFAULT_TWIN])):
        if fixture in metafunc.fixturenames:
            metafunc.parametrize(
                fixture,
                [pytest.param(case, id=", ".join(case), marks=pytest.mark.xdist_group(case[0])) for case in some],
                indirect=True,
                scope="session",
            )
    if "corrected" in metafunc.fixturenames:
        metafunc.parametrize(
            "corrected",
            [
                pytest.param(id, id=id, marks=pytest.mark.xdist_group(id))
                for id in Registry(None, "v2").list_competition_ids()
            ],
            indirect=True,
            scope="session",
        )
    if "competition_id" in metafunc.fixturenames:
        metafunc.parametrize(
            "competition_id",
            [pytest.param(id, id=id, marks=pytest.mark.xdist_group(id)) for id in Registry().list_competition_ids()],
            scope="session",
        )


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    """A command run in this process sets up the log for a terminal; later tests need theirs."""
    log = logging.getLogger("mlebench")
    before = log.handlers[:], log.level, log.propagate
    yield
    log.handlers[:], log.propagate = before[0], before[2]
    log.setLevel(before[1])


@pytest.fixture(scope="session")
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CompetitionCase]:
    """A golden case; its files are removed when no test needs them any more, unless the default twin is shared."""
    shared = request.param[1] == DEFAULT_TWIN
    data_dir = default_twins_dir(tmp_path_factory) if shared else tmp_path_factory.mktemp("twins")
    yield _prepared(request, data_dir)
    if not shared and not request.session.testsfailed:
        shutil.rmtree(data_dir)


@pytest.fixture(scope="session")
def twin(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> CompetitionCase:
    """The golden case of the default twin alone."""
    return _prepared(request, default_twins_dir(tmp_path_factory))


@pytest.fixture(scope="session")
def corrected(request: pytest.FixtureRequest, default_twin: Callable[..., Competition]) -> CompetitionCase:
    """The default twin under profile v2."""
    return CompetitionCase(default_twin(request.param, "v2"))


def _prepared(request: pytest.FixtureRequest, data_dir: Path) -> CompetitionCase:
    id, name = request.param
    golden = golden_figures(id)
    assert golden, f"tests/golden/{id}.json is missing: record what the reference does with this twin"
    seed, size = twin_named(name)
    competition = Registry(data_dir).get_competition(id)
    prepare(competition, TwinSource(seed, size))
    return CompetitionCase(competition, seed, size, golden[name])


def default_twins_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory shared by all processes of a session. The first process that needs a twin prepares it."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "default-twins"


@pytest.fixture(scope="session")
def default_twin(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Competition]:
    """A competition's default twin, prepared; do not change its files, and run no agent on it."""

    def prepared(id: str, profile: str = "v1") -> Competition:
        competition = Registry(default_twins_dir(tmp_path_factory), profile).get_competition(id)
        prepare(competition, TwinSource())
        return competition

    return prepared


@pytest.fixture(scope="session")
def titanic(tmp_path_factory: pytest.TempPathFactory) -> Competition:
    """A small prepared competition for tests that need any competition; do not change its files."""
    competition = Registry(tmp_path_factory.mktemp("titanic")).get_competition("spaceship-titanic")
    prepare(competition, TwinSource())
    return competition


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test reads or writes the settings, cache or credentials of the user who runs it."""
    for variable in (
        "MLEBENCH_DATA_DIR",
        "MLEBENCH_COMPETITION_PATH",
        "MLEBENCH_CONFIG",
        "MLEBENCH_VENVS_DIR",
        "KAGGLE_API_TOKEN",
        "KAGGLE_USERNAME",
        "KAGGLE_KEY",
    ):
        monkeypatch.delenv(variable, raising=False)
    for variable in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "KAGGLE_CONFIG_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
