"""All phrases of a sentence are on one side of the split (S2), and phrases like NA and null stay in the files (F14).

Every prediction must be a whole number, so that no text spoils the others (G22): the form of submissions sees to it.
"""

from mlebench.kit import Output, Raw, accepts_paths, split_whole_groups

from .prepare import phrases_of, write_parts


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    phrases = phrases_of(raw, ["Phrase"])
    write_parts(*split_whole_groups(phrases, phrases["SentenceId"], test_size=0.3, seed=0), public, private)
