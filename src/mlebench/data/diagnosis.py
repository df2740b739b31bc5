"""What is at fault when a competition's `prepare` fails: the raw data, or its code?

Who raised the error may know: the kit does when it is called with the wrong types or words (CompetitionError). When a
raw file or a column is missing (RawDataError), or code fails on a value, it may be damage or a mistake in the code. So
the code is tried on the competition's twin, which has the layout of the real data: if it fails there too, its author
must act; if it works there, the raw data is to blame.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from mlebench.core.authors import author_errors
from mlebench.core.errors import CompetitionError, PrerequisiteError, RawDataError
from mlebench.core.paths import PREPARE, SCRATCH, TWIN, CompetitionPaths, moved, twin_record
from mlebench.data.sources import make_twin
from mlebench.registry import Competition

# Never the fault of the data.
_OF_CODE = (MemoryError, NameError, ImportError, SyntaxError, AssertionError, NotImplementedError)


@contextmanager
def explain_prepare_failure(competition: Competition, *, trusted: bool) -> Iterator[None]:
    """Wraps a competition's `prepare`; data that is the published one, or a twin, is `trusted` and never to blame."""
    try:
        with author_errors():
            yield
    except RawDataError as error:
        has_twin = (competition.folder / TWIN).is_file()
        if trusted or (has_twin and not _works_on_twin(competition)):
            raise _by_author(competition, error) from error
        raise PrerequisiteError(f"{competition.id}: {error}") from error
    except CompetitionError as error:
        cause = error.__cause__
        if cause is None or isinstance(cause, _OF_CODE) or trusted or not _works_on_twin(competition):
            raise _by_author(competition, error) from cause
        raise PrerequisiteError(_message(competition, cause, error.location)) from cause
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


def _by_author(competition: Competition, error: CompetitionError | RawDataError) -> CompetitionError:
    return CompetitionError(error.fault, f"{competition.id}: {error.location or PREPARE}")


def _works_on_twin(competition: Competition) -> bool:
    with TemporaryDirectory(prefix=SCRATCH) as folder:
        folders = CompetitionPaths(Path(folder), competition.id)
        try:
            scaled = make_twin(competition, folders.raw, seed=0, size=1.0)
            twin_record(folders.raw).write_text(json.dumps({"scaled": scaled}), encoding="utf-8")
            for side in (folders.public, folders.private):
                side.mkdir(parents=True)
            competition.prepare_fn(raw=folders.raw, public=folders.public, private=folders.private)
        except Exception:
            return False
        needed = (competition.answers, competition.sample_submission)
        return all(moved(path, competition.paths.prepared, folders.prepared).is_file() for path in needed)


def _message(competition: Competition, error: BaseException, location: str | None = None) -> str:
    reason = " ".join(f"{type(error).__name__}: {error}".split())[:300] + (f" at {location}" if location else "")
    notes = "".join(f"{note}. " for note in getattr(error, "__notes__", []))
    return (
        f"{competition.id}: its raw data cannot be prepared ({reason}). {notes}"
        f"The same code works on synthetic data, so the raw data is damaged, or not this competition's: get it again"
    )
