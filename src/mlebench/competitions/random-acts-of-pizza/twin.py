from typing import Any

import numpy as np

from mlebench.kit.twins import TwinFolder, json_bytes, records_of, rounded

DAY = 86400
ONE_SECOND = 1.1574074074074073e-05  # in days; how the original writes a first post just before the request
HARDSHIP = ["my kids are hungry", "I lost my job", "rent took the last paycheck", "our fridge is empty"]
SMALL_TALK = [
    "hello reddit",
    'we are "broke" students',
    "a pizza would be great",
    "finals week…\n\nplease",
    "I'll pay it forward",
    "jalapeño & pineapple, yes",
    "thanks 😀",
    "path\\to\tcheese",
]
SUBREDDITS = ["AskReddit", "funny", "gaming", "pics", "trees", "WTF", "politics", "Random_Acts_Of_Pizza"]
# What became known only after the request; the original test records do not have it.
AFTERWARDS = ("post_was_edited", "request_text", "requester_received_pizza", "requester_user_flair")


def twin(raw: TwinFolder) -> None:
    """Signal: requests that mention hardship, and those of accounts with many comments, are granted more often."""
    count, later_count = raw.count(200, least=80), raw.count(80, least=32)
    records = _requests(raw.rng, count + later_count)
    later = [
        {name: value for name, value in record.items() if name not in AFTERWARDS and not name.endswith("_at_retrieval")}
        for record in records[count:]
    ]
    ids = [record["request_id"] for record in later]

    raw.write("train.json", json_bytes(records[:count]))
    raw.write("test.json", json_bytes(later))
    raw.write_csv("sampleSubmission.csv", {"request_id": ids, "requester_received_pizza": [0] * later_count})


def _requests(rng: np.random.RandomState, count: int) -> list[dict[str, Any]]:
    hardship = rng.rand(count) < 0.3
    when = 1297723000 + np.sort(rng.randint(0, 960 * DAY, count))
    requester = _requesters(rng, when)
    busy = requester["requester_number_of_comments_at_request"] > 100
    granted = rng.rand(count) < 0.1 + 0.4 * hardship + 0.2 * busy
    known_giver = granted & (rng.rand(count) < 0.3)
    texts = [_text(rng, hard) for hard in hardship]
    edited = rng.rand(count).tolist()
    columns: dict[str, Any] = {
        **requester,
        "giver_username_if_known": [f"giver_{row}" if known else "N/A" for row, known in enumerate(known_giver)],
        "number_of_downvotes_of_request_at_retrieval": rng.randint(0, 5, count),
        "number_of_upvotes_of_request_at_retrieval": rng.randint(0, 20, count) + 3 * granted,
        "post_was_edited": [float(t) if p < 0.1 else p < 0.12 for p, t in zip(edited, when + 60, strict=True)],
        "request_id": [f"t3_{number:x}" for number in 0x10000 + rng.permutation(count)],
        "request_number_of_comments_at_retrieval": 2 * granted + rng.randint(0, 10, count),
        "request_text": [
            f"{text}\n\n**EDIT:** got one!" if p < 0.1 and text else text for text, p in zip(texts, edited, strict=True)
        ],
        "request_text_edit_aware": texts,
        "request_title": [f"[Request] {title}" for title in rng.choice(SMALL_TALK, count)],
        "requester_received_pizza": granted,
        "requester_user_flair": [
            ("PIF" if p > 0.9 else "shroom") if yes else None for p, yes in zip(edited, granted, strict=True)
        ],
        "unix_timestamp_of_request": (when + 3600).astype(float),
        "unix_timestamp_of_request_utc": when.astype(float),
    }
    return records_of({name: columns[name] for name in sorted(columns)})  # as the original has them


def _requesters(rng: np.random.RandomState, when: np.ndarray) -> dict[str, Any]:
    """What is known about the requesters, at the time of the request and when the data was collected."""
    count = len(when)
    since = rounded((1381400000 - when) / DAY)
    age = rounded(rng.randint(0, 900 * DAY, count) / DAY)
    first_post = np.where(rng.rand(count) < 0.6, 0.0, rounded(age * rng.rand(count)))
    first_post[rng.rand(count) < 0.05] = ONE_SECOND
    minus = rng.randint(-170, 3000, count)
    counters = {
        "number_of_comments": (rng.geometric(0.01, count) - 1, 300),
        "number_of_comments_in_raop": (rng.geometric(0.5, count) - 1, 5),
        "number_of_posts": (rng.geometric(0.05, count) - 1, 30),
        "number_of_posts_on_raop": (rng.geometric(0.9, count) - 1, 2),
        "upvotes_minus_downvotes": (minus, 1000),
        "upvotes_plus_downvotes": (abs(minus) + rng.randint(0, 9000, count), 5000),
    }
    subreddits = [rng.choice(SUBREDDITS, size, replace=False).tolist() for size in rng.randint(0, 8, count)]
    columns: dict[str, Any] = {
        "requester_account_age_in_days_at_request": age,
        "requester_account_age_in_days_at_retrieval": rounded(age + since),
        "requester_days_since_first_post_on_raop_at_request": first_post,
        "requester_days_since_first_post_on_raop_at_retrieval": rounded(first_post + since),
        "requester_number_of_subreddits_at_request": [len(names) for names in subreddits],
        "requester_subreddits_at_request": subreddits,
        "requester_username": [f"user-{number:03d}" for number in rng.randint(0, 2 * count, count)],
    }
    for name, (values, growth) in counters.items():
        columns[f"requester_{name}_at_request"] = values
        columns[f"requester_{name}_at_retrieval"] = values + rng.randint(0, growth, count)
    return columns


def _text(rng: np.random.RandomState, hardship: bool) -> str:
    said = rng.choice(SMALL_TALK, rng.randint(0, 6)).tolist()
    if hardship:
        said.insert(0, str(rng.choice(HARDSHIP)))
    return ". ".join(said)
