"""mlebench doctor"""

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from mlebench.cli.console import print_table
from mlebench.cli.executor_options import executor_options
from mlebench.cli.options import data_dir_option, registry_at, runs_dir_at, runs_dir_option
from mlebench.cli.prepare_check import show_checks
from mlebench.cli.quantities import size_text
from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError
from mlebench.core.os_errors import explanation
from mlebench.core.settings import read_settings
from mlebench.core.suggestions import did_you_mean
from mlebench.data.state import holds_twins, is_prepared
from mlebench.registry import Registry

if TYPE_CHECKING:
    from mlebench.records.group import ExecutorConfig


class Diagnosis(NamedTuple):
    state: str  # ok, or what needs attention
    what: str
    detail: str
    advice: str = ""


@click.command()
@click.option("--kaggle", is_flag=True, help="Also ask Kaggle about every competition: rules and download size.")
@click.option(
    "--environment",
    type=click.Path(file_okay=False, path_type=Path),
    help="Also try a conda environment or a venv, as runs with this option would use it.",
)
@executor_options
@runs_dir_option
@click.option("--look", type=click.Path(path_type=Path), hidden=True)  # passed when doctor runs on a node
@data_dir_option
def command(
    kaggle: bool,
    environment: Path | None,
    data_dir: Path | None,
    runs_dir: Path | None,
    look: Path | None,
    **executor: Any,
) -> None:
    """Check this machine: Python, disk, data, Kaggle login, sandboxes. Each line says what to do.

    With `--executor slurm` or `ray`, a small job checks each node instead, up to eight nodes.
    """
    from mlebench.run.schedulers import choose_executor

    if look:
        from mlebench.run.nodes import look as look_around

        look_around(look)
        return
    executor_config = choose_executor(**executor)
    if executor_config.is_remote:
        shared = runs_dir_at(runs_dir, data_dir)
        print_table(["", "what", "found", "what to do"], list(_nodes(executor_config, shared.absolute())))
        return
    findings = [
        *_found("python", _python),
        *_found("settings", _settings),
        *_found("data dir", lambda: _folder(registry_at(data_dir).get_data_dir())),
        *_found("disk", lambda: _disk(registry_at(data_dir).get_data_dir())),
        *_found("prepared", lambda: _prepared(registry_at(data_dir))),
        *_found("kaggle login", _kaggle),
        *_found("sandboxes", _sandboxes),
        *_found("packages", _packages),
        *_found("GPUs", _gpus),
    ]
    if environment:
        hidden = (registry_at(data_dir).get_data_dir(), runs_dir_at(runs_dir, data_dir))
        findings += _found("environment", lambda: _environment(environment, hidden))
    print_table(["", "what", "found", "what to do"], findings)
    if kaggle:
        from mlebench.data.kaggle import KaggleSource

        click.echo()
        registry = registry_at(data_dir)
        show_checks(registry, registry.list_competition_ids(), KaggleSource())


def _nodes(executor_config: "ExecutorConfig", shared: Path) -> Iterator[Diagnosis]:
    from mlebench.run.nodes import ask_nodes
    from mlebench.sandbox import ON_NODES

    for node, facts in ask_nodes(executor_config, shared).items():
        if facts is None:
            yield Diagnosis(
                "bad", node, "does not answer", f"see if it is busy, and if it can see {shared} and {sys.executable}"
            )
            continue
        works = [name for name, fault in facts["sandboxes"].items() if fault is None]
        yield Diagnosis(
            "ok" if works else "bad",
            f"{node}: sandboxes",
            ", ".join(works) or "none works",
            "" if works else str(facts["sandboxes"][ON_NODES.name]),
        )
        limits = ", ".join(facts["limits"])
        yield Diagnosis(
            "ok" if limits else "note",
            f"{node}: cgroups",
            limits or "none",
            "" if limits else "memory will not be limited, other limits will be watched",
        )
        yield Diagnosis("ok", f"{node}: GPUs", ", ".join(facts["gpus"]) or "none")
        yield Diagnosis("ok", f"{node}: agents' packages", ", ".join(facts["venvs"]) or "none")
        late = abs(facts["ahead"]) > 60
        advice = "synchronise it: runs do not depend on it, but times in records do" if late else ""
        yield Diagnosis("note" if late else "ok", f"{node}: clock", f"{facts['ahead']:+g} s", advice)
        faults = "; ".join(facts["disk"])
        advice = "results are not safe on this disk: name another with --runs-dir" if faults else ""
        yield Diagnosis("bad" if faults else "ok", f"{node}: disk", faults or "works", advice)


def _found(what: str, look: Callable[[], Iterable[Diagnosis]]) -> list[Diagnosis]:
    """The diagnoses of a check; an exception that ends it becomes the last of them."""
    diagnoses = []
    try:
        diagnoses.extend(look())
    except PrerequisiteError as error:
        diagnoses.append(Diagnosis("bad", what, str(error), "fix this"))
    except OSError as error:
        diagnoses.append(Diagnosis("bad", what, explanation(error) or str(error), "fix this"))
    except Exception as error:
        diagnoses.append(Diagnosis("bad", what, f"{type(error).__name__}: {error}", "please report this"))
    return diagnoses


def _python() -> Iterator[Diagnosis]:
    yield Diagnosis("ok", "python", f"{platform.python_version()} at {sys.executable}")


def _settings() -> Iterator[Diagnosis]:
    yield from _variables()
    path = paths.config_file()
    read_settings(path)
    if path.exists() or paths.CONFIG_VARIABLE not in os.environ:
        yield Diagnosis("ok", "settings", str(path) if path.exists() else "none")
    else:
        yield Diagnosis("bad", "settings", f"{path} does not exist", f"fix ${paths.CONFIG_VARIABLE}")
    for fault in Registry().search_path_faults():
        yield Diagnosis("bad", "search path", fault, f"fix ${paths.COMPETITION_PATH_VARIABLE} or `competition_path`")


def _variables() -> Iterator[Diagnosis]:
    """Environment variables that look like ours and have no effect."""
    for name in sorted(os.environ):
        if name.startswith(paths.VARIABLE_PREFIX) and name not in paths.VARIABLES:
            meant = did_you_mean(name, paths.VARIABLES, prefix=paths.VARIABLE_PREFIX, cutoff=0.72)
            yield Diagnosis("note", "settings", f"${name} has no effect", meant)


def _existing(folder: Path) -> Path:
    """The folder, or its nearest parent that exists."""
    return next(path for path in (folder, *folder.parents) if os.path.lexists(path))


def _folder(folder: Path) -> Iterator[Diagnosis]:
    existing = _existing(folder)
    if not existing.is_dir():
        yield Diagnosis("bad", "data dir", f"{existing} is not a folder", "name another with --data-dir")
    elif not os.access(existing, os.W_OK | os.X_OK):
        yield Diagnosis("bad", "data dir", f"{folder} is not writable", "name another with --data-dir")
    else:
        kind = "twins" if holds_twins(folder) else "real data"
        yield Diagnosis("ok", "data dir", f"{folder} ({kind if folder.exists() else 'not there yet'})")


def _disk(folder: Path) -> Iterator[Diagnosis]:
    free = shutil.disk_usage(_existing(folder)).free / 1e9
    enough = free > 200
    yield Diagnosis(
        "ok" if enough else "note", "disk", f"{free:.0f} GB free", "" if enough else "the lite split needs 200 GB"
    )


def _prepared(registry: Registry) -> Iterator[Diagnosis]:
    ids = registry.list_competition_ids()
    if (data_dir := registry.get_data_dir()).is_dir():
        any(data_dir.iterdir())  # an unreadable folder is one finding, not one per competition
    prepared = 0
    for id in ids:
        try:
            prepared += is_prepared(registry.get_competition(id))
        except PrerequisiteError as error:
            yield Diagnosis("bad", id, str(error), "fix this")
        except OSError as error:
            yield Diagnosis("bad", id, explanation(error) or str(error), "fix this")
    advice = "" if prepared else "run `mlebench prepare -c ID`, or `mlebench demo` to try twins"
    yield Diagnosis("ok" if prepared else "note", "prepared", f"{prepared} of {len(ids)} competitions", advice)


def _kaggle() -> Iterator[Diagnosis]:
    from mlebench.data.kaggle_api import credentials

    if sources := credentials():
        yield Diagnosis("ok", "kaggle login", ", ".join(sources))
    else:
        yield Diagnosis(
            "note", "kaggle login", "none", "needed only for downloads: put an API token in ~/.kaggle/access_token"
        )


def _sandboxes() -> Iterator[Diagnosis]:
    from mlebench.sandbox import BACKENDS, require_linux

    try:
        require_linux()
    except PrerequisiteError as error:
        yield Diagnosis("note", "sandboxes", "none", str(error))
        return
    faults = {name: backend().fault() for name, backend in BACKENDS.items() if backend.is_isolated}
    defect = "note" if None in faults.values() else "bad"  # one that works is enough
    for name, fault in faults.items():
        yield Diagnosis(defect if fault else "ok", name, "does not work here" if fault else "works", fault or "")


def _environment(folder: Path, hidden: Iterable[Path]) -> Iterator[Diagnosis]:
    from mlebench.run.python_environment import ENVIRONMENT, PythonEnvironment, trial_fault
    from mlebench.sandbox import ON_NODES

    ENVIRONMENT.refuse(folder, hidden)
    environment, sandbox = PythonEnvironment.read(folder), ON_NODES()
    contents = f"Python {environment.version}, {len(environment.packages)} packages"
    if sandbox.fault():
        yield Diagnosis("note", "environment", contents, f"not tried, because {sandbox.name} does not work here")
    elif fault := trial_fault(environment, sandbox):
        advice = "make it again with a Python whose files are in one folder"
        yield Diagnosis("bad", "environment", f"{contents}, but not in {sandbox.name}: {fault}", advice)
    else:
        yield Diagnosis("ok", "environment", f"{contents}, works in {sandbox.name}")
    if unseen := environment.unseen():
        advice = "install them without `--editable`, if agents need them"
        yield Diagnosis("note", "environment", f"agents cannot see {', '.join(unseen)}", advice)


def _packages() -> Iterator[Diagnosis]:
    from mlebench.packages.cache import FileCache
    from mlebench.packages.proxy import pip_here

    pip, cache = pip_here(), paths.packages_dir()
    size = f"{cache}: {size_text(FileCache(cache).size())}"
    if pip is None:
        advice = "with --packages, an agent whose Python has no pip needs uv: install pip beside mlebench to lend it"
        yield Diagnosis("note", "packages", f"no pip to lend; {size}", advice)
    else:
        yield Diagnosis("ok", "packages", f"a pip to lend; {size}")


def _gpus() -> Iterator[Diagnosis]:
    from mlebench.run.hardware import gpus

    devices = gpus()
    names = ", ".join(f"{gpu.index}: {gpu.name}" for gpu in devices)
    yield Diagnosis("ok", "GPUs", names or "none")
