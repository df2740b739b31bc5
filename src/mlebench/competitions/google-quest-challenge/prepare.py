import numpy as np

from mlebench.kit import Output, Raw, Table, accepts_paths, split_rows, unique

QUESTION = (
    "asker_intent_understanding body_critical conversational expect_short_answer fact_seeking "
    "has_commonly_accepted_answer interestingness_others interestingness_self multi_intent not_really_a_question "
    "opinion_seeking type_choice type_compare type_consequence type_definition type_entity type_instructions "
    "type_procedure type_reason_explanation type_spelling well_written"
)
ANSWER = (
    "helpful level_of_information plausible relevance satisfaction type_instructions type_procedure "
    "type_reason_explanation well_written"
)
TARGETS = [*(f"question_{name}" for name in QUESTION.split()), *(f"answer_{name}" for name in ANSWER.split())]


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    table = raw.table("train.csv")
    train, test = split_rows(np.arange(len(table)), test_size=0.1, seed=0)
    _let_vary(table["question_type_spelling"], train, test)
    write_parts(table, train, test, public, private)


def write_parts(table: Table, train: np.ndarray, test: np.ndarray, public: Output, private: Output) -> None:
    """Write the rows with these numbers."""
    answers = table.take(test).select("qa_id", *TARGETS)

    public.write("train.csv", table.take(train))
    public.write("test.csv", table.take(test).drop(*TARGETS))
    # Rising numbers, because constant ones have no rank correlation.
    public.write("sample_submission.csv", answers.assign(dict.fromkeys(TARGETS, np.linspace(0, 1, len(test)))))
    private.write("test.csv", answers)


def _let_vary(spelling: np.ndarray, train: np.ndarray, test: np.ndarray) -> None:
    """Few questions are about spelling. If none of the test rows is, the first one swaps places with a train row."""
    if len(unique(spelling[test])) == 1:
        about_spelling = np.flatnonzero(spelling[train])[0]
        train[about_spelling], test[0] = test[0], train[about_spelling]
