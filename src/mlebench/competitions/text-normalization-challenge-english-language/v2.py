"""Words that CSV readers take for a missing value, such as NA and null, stay in all files (F14).

Graded as text, they differ from each other and from an empty cell (G22): both sides are read so under this profile, and
v1's grader compares what it gets.
"""

from mlebench.kit import Output, Raw, accepts_paths

from .prepare import prepare_with_text


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    prepare_with_text(["before", "after"], raw, public, private)
