"""Both scores of a submission that was made on profile v1's data: v1's, and what v2's grader and answers say.

That corrects the grader, not the leak: whoever made the submission saw v1's files. So the v2 report is stamped
`seen: v1`, and standings refuse it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlebench.core.errors import NotPreparedError, PrerequisiteError, UnknownCompetitionError
from mlebench.core.outcomes import NOT_PREPARED
from mlebench.core.paths import PROFILES
from mlebench.data.state import preparation_fault, read_manifest_head, require_prepared
from mlebench.grade.batch import SubmissionLine, Tracker, grade_entries, read_entries
from mlebench.grade.limits import DEFAULT_LIMITS, GradingLimits
from mlebench.grade.submission import grade_csv
from mlebench.registry import Competition, Registry
from mlebench.registry import registry as default_registry
from mlebench.scoring import CompetitionReport

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from mlebench.kit.submission_form import SubmissionForm

NOT_COMPARABLE = "not_comparable"
_FIRST, _LATER = PROFILES


class OtherTestRowsError(PrerequisiteError):
    """A submission for one profile of a competition is none for the other."""


def grade_jsonl_under_profiles(
    path_to_submissions: Path,
    output_dir: Path,
    registry: Registry = default_registry,
    track: Tracker = iter,
    *,
    jobs: int = 1,
    limits: GradingLimits = DEFAULT_LIMITS,
    interval: bool = False,
) -> dict[str, dict[str, Any]]:
    """Grade the submissions that a JSON-lines file names under v1 and v2; return the grading report of each profile.

    Each is also written, into the folder of `output_dir` named after its profile. The lines of a competition whose
    profiles do not have the same test rows, both prepared, are listed as `unjudged` in both.
    """
    source = Path(path_to_submissions)
    fault_of = cache(partial(_fault_of, registry))
    entries = read_entries(source)
    lines = [line if line.fault else _refused(line, fault_of(line.competition_id)) for line in entries]
    return {
        profile: grade_entries(
            lines,
            source,
            Path(output_dir) / profile,
            registry.with_profile(profile),
            track,
            jobs=jobs,
            limits=limits,
            interval=interval,
            seen=_seen(profile),
        )
        for profile in PROFILES
    }


def grade_csv_under_profiles(
    path_to_submission: Path, competition_id: str, registry: Registry = default_registry, **options: Any
) -> dict[str, CompetitionReport]:
    """The report of a submission under each profile; `options` are those of `grade_csv`."""
    competitions = [registry.with_profile(profile).get_competition(competition_id) for profile in PROFILES]
    require_same_tests(*competitions)
    reports = {
        competition.profile: grade_csv(path_to_submission, competition, **options) for competition in competitions
    }
    return {profile: replace(report, seen=_seen(profile)) for profile, report in reports.items()}


def require_same_tests(first: Competition, later: Competition) -> None:
    """Raise unless both profiles of a competition are prepared, from the same raw data, and have the same test rows.

    Rows are the same if the sample submissions have the same ids and the answers agree. Ids alone prove nothing: where
    `prepare` gives them out, a profile may give the same ones to other rows.
    """
    _require_both_prepared(first, later)
    sources = [head and head.source for head in map(read_manifest_head, (first, later))]
    seeds = {(source.seed, source.size) for source in sources if source and source.kind == "twin"}
    if len(seeds) > 1:
        raise OtherTestRowsError(f"{first.id}: its profiles were prepared from two different twins")
    form, of_first, of_later = _sample_ids(first, later)
    if of_first is None or not of_first.equals(of_later):
        shared = 0 if of_first is None else len(of_first.drop_duplicates().merge(of_later.drop_duplicates()))
        raise OtherTestRowsError(
            f"{first.id}: its profiles have different test rows ({0 if of_first is None else len(of_first)} under "
            f"{_FIRST}, {len(of_later)} under {_LATER}, {shared} ids in both), so no submission is one for both"
        )
    if not _same_answers(first, later, form.key):
        raise OtherTestRowsError(
            f"{first.id}: its profiles have different test rows under the same ids, so no submission is one for both"
        )


def _require_both_prepared(*competitions: Competition) -> None:
    faults = []
    for competition in competitions:
        if preparation_fault(competition):
            try:
                require_prepared(competition)
            except NotPreparedError as error:
                faults.append(str(error))
    if faults:
        raise NotPreparedError(" ".join(faults))


def _sample_ids(
    first: Competition, later: Competition
) -> tuple["SubmissionForm", "pd.DataFrame | None", "pd.DataFrame"]:
    """The form of v2, and the sorted ids of both sample submissions; None where v1's lacks a column of them."""
    import pandas as pd

    from mlebench.kit.samples import public_sample_bytes
    from mlebench.kit.submission_form import SubmissionForm

    form = SubmissionForm.of(later)

    def ordered(ids: Mapping[str, Any]) -> pd.DataFrame:
        return pd.DataFrame(ids).astype(str).sort_values([*ids], ignore_index=True)

    try:
        of_first = ordered(replace(form, sample=public_sample_bytes(first)).ids)
    except KeyError:
        of_first = None
    return form, of_first, ordered(form.ids)


def _same_answers(first: Competition, later: Competition, key: Sequence[str]) -> bool:
    """Whether the columns that both answers have agree in every row."""
    import pandas as pd

    if first.answers.read_bytes() == later.answers.read_bytes():
        return True
    if {first.answers.suffix, later.answers.suffix} != {".csv"}:
        return False
    tables = [
        pd.read_csv(competition.answers, dtype=str, keep_default_na=False, na_filter=False)
        for competition in (first, later)
    ]
    columns = [name for name in tables[0] if name in tables[1]]
    if not {*key} < {*columns} or len(tables[0]) != len(tables[1]):
        return False
    first_table, later_table = (table.sort_values([*key], kind="stable", ignore_index=True) for table in tables)
    return all(_agree(first_table[name].to_numpy(object), later_table[name].to_numpy(object)) for name in columns)


def _agree(cells: "np.ndarray", later_cells: "np.ndarray") -> bool:
    """Whether v1's cells say what v2's do: v1 prints fewer digits of some, and nothing for words such as `NA`."""
    import numpy as np
    import pandas as pd

    from mlebench.engine.frames import NA_TOKENS

    different = cells != later_cells
    texts = [cells[different], later_cells[different]]
    numbers = [np.asarray(pd.to_numeric(pd.Series(text, dtype=object), errors="coerce"), float) for text in texts]
    missing = (texts[0] == "") & np.isin(texts[1].astype(str), [*NA_TOKENS])
    return bool((np.isclose(*numbers, rtol=1e-6, atol=1e-9) | missing).all())


def _fault_of(registry: Registry, id: str) -> tuple[str, str] | None:
    """Why a competition cannot be graded under both profiles: a status and a reason."""
    try:
        first = registry.with_profile(_FIRST).get_competition(id)
    except (PrerequisiteError, OSError):
        return None  # grading will say what is wrong
    try:
        require_same_tests(first, registry.with_profile(_LATER).get_competition(id))
    except NotPreparedError as error:
        return NOT_PREPARED, str(error)
    except (OtherTestRowsError, UnknownCompetitionError) as error:
        return NOT_COMPARABLE, str(error)
    except (PrerequisiteError, OSError) as error:
        return NOT_COMPARABLE, f"{id}: {error}"
    return None


def _refused(line: SubmissionLine, fault: tuple[str, str] | None) -> SubmissionLine:
    return line if fault is None else line._replace(fault_status=fault[0], fault=fault[1])


def _seen(profile: str) -> str | None:
    return None if profile == _FIRST else _FIRST
