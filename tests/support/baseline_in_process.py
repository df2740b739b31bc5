"""The agent `baseline` on one competition, in a process that has already loaded its libraries.

A fork server loads them once; each competition then costs only what its models cost. Our validation is called directly:
HTTP is tested elsewhere.
"""

import io
import multiprocessing
import os
import sys
from pathlib import Path

from threadpoolctl import threadpool_limits

from mlebench.core import paths
from mlebench.registry import Competition, Registry


def run(competition: Competition, home: Path, seconds: float = 300, trials: int = 0) -> int | None:
    """Leave `submission/`, `logs/` and `log` in a folder; returns the exit code."""
    for name in ("submission", "logs"):
        (home / name).mkdir(parents=True)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["sklearn.ensemble", "sklearn.neighbors", "pandas", "mlebench.validate.format_check"]
    )
    process = context.Process(target=_inside, args=(competition.paths.data_dir, competition.id, home, seconds, trials))
    process.start()
    try:
        process.join()
    finally:
        process.kill()  # unless it has ended
    return process.exitcode


def _inside(data_dir: Path, id: str, home: Path, seconds: float, trials: int) -> None:
    log = os.open(home / "log", os.O_CREAT | os.O_WRONLY)
    os.dup2(log, 1)
    os.dup2(log, 2)
    sys.path.insert(0, str(paths.agents_dir() / "baseline"))
    import main
    import outside

    from mlebench.kit import public_sample_bytes
    from mlebench.validate.format_check import check_format

    competition = Registry(data_dir).get_competition(id)
    outside.validate = lambda content: check_format(io.BytesIO(content), competition)
    path = competition.public_sample or competition.sample_submission
    sample = path if path.suffix == ".csv" else home / path.stem
    if sample != path:
        sample.write_bytes(public_sample_bytes(competition))
    with threadpool_limits(1):  # other tests run at the same time
        public, submission, logs = competition.public_dir, home / "submission", home / "logs"
        main.BaselineAgent(public, sample, submission, logs, seconds, trials, seed=0).run()
