"""What an agent did: rule violations, failures, copied code. Judging never changes what is judged.

`subjects` are what is inspected: the runs of a group, or the lines of a JSON-lines file. Each `inspect_…` function
yields what it finds about them, and stores it in the folders of runs. Everything that an agent left is hostile, and
read through `untrusted` only.
"""

from typing import TYPE_CHECKING

from mlebench.core.lazy_imports import lazy_imports

if TYPE_CHECKING:
    from mlebench.integrity.failures.inspection import inspect_failures
    from mlebench.integrity.familiarity.study import Familiarity, FamiliarityStudy, StudyOptions
    from mlebench.integrity.plagiarism.inspection import inspect_plagiarism
    from mlebench.integrity.rules.inspection import inspect_rules
    from mlebench.integrity.subjects import Subject, read_subjects

__all__ = [
    "Familiarity",
    "FamiliarityStudy",
    "StudyOptions",
    "Subject",
    "inspect_failures",
    "inspect_plagiarism",
    "inspect_rules",
    "read_subjects",
]

__getattr__, __dir__ = lazy_imports(
    __name__,
    {
        "mlebench.integrity.failures.inspection": ("inspect_failures",),
        "mlebench.integrity.familiarity.study": ("Familiarity", "FamiliarityStudy", "StudyOptions"),
        "mlebench.integrity.plagiarism.inspection": ("inspect_plagiarism",),
        "mlebench.integrity.rules.inspection": ("inspect_rules",),
        "mlebench.integrity.subjects": ("Subject", "read_subjects"),
    },
)
