"""What it takes to grade the gold submission: from that follows what grading any submission may take."""

import hashlib
import json
import logging
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from mlebench.core import paths
from mlebench.core.files import write_whole
from mlebench.core.memory import peak_during
from mlebench.data.answers import answers_for_grader
from mlebench.data.state import read_manifest_head
from mlebench.engine.trees import MODE
from mlebench.records.data import GoldCost
from mlebench.registry import Competition

logger = logging.getLogger(__name__)


def grade_gold(competition: Competition, prepared: Path | None = None) -> int:
    """Grade the gold submission in this process; raises if that fails, and returns its size in bytes.

    `prepared` is where the data is if that is not its final place.
    """
    from mlebench.kit.submission_form import read_submission

    if prepared:
        competition = competition.prepared_in(prepared)
    gold = read_submission(competition.gold_submission, competition)
    competition.grader.score(gold, answers_for_grader(competition))
    return competition.gold_submission.stat().st_size


def write_gold(competition: Competition, prepared: Path) -> tuple[str, dict[str, int]]:
    """Write the gold submission of a profile that `prepare` has not written: the columns of a submission, from the
    answers. Returns its name and size.
    """
    import pandas as pd

    from mlebench.kit.submission_form import SubmissionForm

    form, gold = SubmissionForm.of(competition), competition.gold_submission
    columns = [*form.key, *form.kinds]
    answers = pd.read_csv(competition.answers, usecols=columns, dtype=str, na_filter=False)
    answers[columns].to_csv(gold, index=False, lineterminator="\n")
    gold.chmod(MODE)
    return gold.relative_to(prepared).as_posix(), {"size": gold.stat().st_size}


def measure_gold(competition: Competition, prepared: Path | None = None) -> GoldCost | None:
    """Return what it takes to grade gold; None if gold cannot be graded."""
    begun = time.process_time()
    try:
        size, memory = peak_during(lambda: grade_gold(competition, prepared))
    except (Exception, SystemExit) as error:
        logger.info("The gold submission of %s cannot be graded: %s", competition.id, error)
        return None
    return GoldCost(round(time.process_time() - begun, 3), memory, size)


def recorded_cost(competition: Competition) -> GoldCost | None:
    """What `prepare` measured or, for data that it did not prepare, an earlier grading on this machine."""
    head = read_manifest_head(competition)
    if head and head.gold:
        return head.gold
    try:
        return msgspec.json.decode(_cache_file(competition).read_bytes(), type=GoldCost)
    except (OSError, msgspec.MsgspecError):
        return None


def keep_cost(competition: Competition, cost: GoldCost) -> None:
    """Cache a figure. This only saves time, so an unwritable folder is ignored."""
    with suppress(OSError):
        path = _cache_file(competition)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, msgspec.json.encode(cost).decode())


def _cache_file(competition: Competition) -> Path:
    return paths.gold_cost(competition.id, hashlib.sha256(data_stamp(competition).encode()).hexdigest())


def data_stamp(competition: Competition) -> str:
    """Return a text that differs when the gold submission, the answers or the grader's version do.

    OSError if a file is not there.
    """
    files = [path.resolve(strict=True) for path in (competition.gold_submission, competition.answers)]
    facts = [(str(path), (status := path.stat()).st_size, status.st_mtime_ns) for path in files]
    return json.dumps([competition.id, competition.profile, competition.version, facts])
