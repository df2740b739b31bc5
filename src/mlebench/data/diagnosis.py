"""What is at fault when a competition's `prepare` fails: the raw data, or its code?

The kit reports errors in reading a raw file where they happen. Other damage only shows when code uses what was read: a
value that is not a number, an id in one table but not in another. The same error may be a mistake in the code. So the
code is tried on the competition's twin, which has the layout of the real data: if it fails there too, it is a bug and
keeps its traceback; if it works there, the raw data is to blame.
"""

import json
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from mlebench.core.errors import PrerequisiteError
from mlebench.core.paths import SCRATCH, CompetitionPaths, moved, twin_record
from mlebench.data.sources import make_twin
from mlebench.registry import Competition

# Never the fault of the data.
_OF_CODE = (MemoryError, NameError, ImportError, SyntaxError, AssertionError, NotImplementedError)


@contextmanager
def explain_prepare_failure(competition: Competition, *, trusted: bool) -> Iterator[None]:
    """Wraps a competition's `prepare`; data that is the published one, or a twin, is `trusted` and never to blame."""
    try:
        yield
    except PrerequisiteError as error:
        if competition.id in str(error):
            raise
        raise PrerequisiteError(f"{competition.id}: {error}") from error
    except _OF_CODE:
        raise
    except Exception as error:
        of_disk = isinstance(error, OSError) and error.errno is not None
        if trusted or of_disk or not _works_on_twin(competition):
            raise
        raise PrerequisiteError(_message(competition, error)) from error


def _works_on_twin(competition: Competition) -> bool:
    with TemporaryDirectory(prefix=SCRATCH) as folder:
        where = CompetitionPaths(Path(folder), competition.id)
        try:
            scaled = make_twin(competition, where.raw, seed=0, size=1.0)
            twin_record(where.raw).write_text(json.dumps({"scaled": scaled}), encoding="utf-8")
            for side in (where.public, where.private):
                side.mkdir(parents=True)
            competition.prepare_fn(raw=where.raw, public=where.public, private=where.private)
        except Exception:
            return False
        needed = (competition.answers, competition.sample_submission)
        return all(moved(path, competition.paths.prepared, where.prepared).is_file() for path in needed)


def _message(competition: Competition, error: Exception) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_in(frame.filename, competition)]
    where = f" at {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    notes = "".join(f"{note}. " for note in getattr(error, "__notes__", []))
    return (
        f"{competition.id}: its raw data cannot be prepared ({reason}{where}). {notes}"
        f"The same code works on synthetic data, so the raw data is damaged, or not this competition's: get it again"
    )


def _is_in(file: str, competition: Competition) -> bool:
    return Path(file).is_relative_to(competition.folder)
