import numpy as np

from mlebench.kit.twins import TwinFolder

RUDE = ("You are an idiot", "what a moron you are", "shut up, clown", "go back to school you dunce", "pathetic loser")
PLAIN = ("I agree with the author", "who won the game last night", "nice goal", "taxes, again", "thanks for the link")
# Most of what is not ASCII was escaped before it was written; some line ends and letters are real.
CORNERS = (
    "",
    r"\xa0",
    r"\\n\\n",
    r"I don\u2019t \\xc2 know",
    'said "no", really',
    "two\nlines",
    "two\r\nlines",
    "naïve ☺",
)
SPAM = '"First! visit my page, NOW"'


def twin(raw: TwinFolder) -> None:
    """Signal: a comment with a rude phrase is mostly an insult, one without is mostly not."""
    train = _comments(raw.rng, raw.count(250, least=30), first=1)
    # In the training file, which is passed on unchanged, an unquoted cell may also be a word for a missing value.
    train["Comment"][:2] = ["NA", "no quotes here"]
    raw.write_csv("train.csv", train)

    test = _comments(raw.rng, raw.count(160, least=30), first=1_000_001)
    _repeat(raw.rng, test)
    rows = len(test["Comment"])
    usage = raw.rng.choice(["PrivateTest", "PublicTest"], rows)
    raw.write_csv("test_with_solutions.csv", {**test, "Usage": usage}, newline="\r\n")
    unlabelled = {name: test[name] for name in ("Date", "Comment")}
    raw.write_csv("test.csv", {"id": range(1, rows + 1), **unlabelled})
    raw.write_csv("sample_submission_null.csv", {"id": range(1, rows + 1), "Insult": [0] * rows, **unlabelled})

    later = _comments(raw.rng, raw.count(60), first=2_000_001)
    numbers = range(1, len(later["Comment"]) + 1)
    usage = ["PrivateTest"] * len(numbers)
    raw.write_csv("impermium_verification_labels.csv", {"id": numbers, **later, "Usage": usage})
    del later["Insult"]
    raw.write_csv("impermium_verification_set.csv", {"id": numbers, **later})


def _comments(rng: np.random.RandomState, count: int, first: int) -> dict[str, list]:
    """Comments that all differ, by the number in the handle they answer to; each has its own quotes."""
    rude = rng.rand(count) < 0.3
    phrases = np.where(rude, rng.choice(RUDE, count), rng.choice(PLAIN, count))
    handles = rng.choice(["@ian", "Bob", "@Zoë_", "user", "_x"], count)
    ends = rng.choice(CORNERS, count)
    days, seconds = rng.randint(1, 31, count), rng.randint(0, 60, count)
    dates = [f"201206{day:02d}1921{second:02d}Z" for day, second in zip(days, seconds, strict=True)]
    return {
        "Insult": (rng.rand(count) < np.where(rude, 0.85, 0.1)).astype(int).tolist(),
        "Date": [None if gap else date for date, gap in zip(dates, rng.rand(count) < 0.18, strict=True)],
        "Comment": [
            f'"{handle}{number} {phrase}. {end}"'
            for number, (handle, phrase, end) in enumerate(zip(handles, phrases, ends, strict=True), start=first)
        ],
    }


def _repeat(rng: np.random.RandomState, test: dict[str, list]) -> None:
    """Repeat comments: some twice, with either label, and one in a twentieth of all rows."""
    rows = rng.permutation(len(test["Comment"]))
    tenth, twentieth = len(rows) // 10, len(rows) // 20
    for row, other in zip(rows[:tenth], rows[tenth : 2 * tenth], strict=True):
        test["Comment"][row] = test["Comment"][other]
    for row in rows[2 * tenth : 2 * tenth + twentieth + 2]:
        test["Comment"][row] = SPAM
