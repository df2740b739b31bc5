import numpy as np

from mlebench.kit.twins import TwinFolder, joined

from .prepare import TARGETS

LEVELS = ("0.0", "0.3333333333333333", "0.5", "0.6666666666666667", "1.0")
OPENINGS = ("How do I", "Why does", "What is", "Is it better to", "Who made")
TOPICS = "a β-radix tree|my sourdough|“DIY” optics|C++ & <b>templates</b>|an Umlaut (ä, ö)|the 3rd person|x_{n+1}, x_n"
WORDS = 'the a &quot;and&quot; code; works \\n but\n"fails" on\r\nline 1e-5 , naïve $x^2$ 2019 so <br/> None'
SITES = {
    "photo.stackexchange.com": "LIFE_ARTS",
    "rpg.stackexchange.com": "CULTURE",
    "physics.stackexchange.com": "SCIENCE",
    "stackoverflow.com": "STACKOVERFLOW",
    "serverfault.com": "TECHNOLOGY",
}
USERS = ("ysap", "Jean-François", "user2719875", "null", "O'Neil, T.", "007", '"Q"')


def twin(raw: TwinFolder) -> None:
    """Signal: the beginning of a title determines the ratings of type, the length of a text the others."""
    count, later_count = raw.count(300, least=150), raw.count(40)
    ids = np.cumsum(raw.rng.randint(1, 4, count + later_count))
    texts, ratings = _pairs(raw.rng, count)
    raw.write_csv("train.csv", {"qa_id": ids[:count], **texts, **ratings})

    later, _ = _pairs(raw.rng, later_count)
    raw.write_csv("test.csv", {"qa_id": ids[count:], **later})
    guess = dict.fromkeys(TARGETS, ["0.00308"] * later_count)
    raw.write_csv("sample_submission.csv", {"qa_id": ids[count:], **guess})


def _pairs(rng: np.random.RandomState, count: int) -> tuple[dict[str, list], dict[str, list]]:
    """Questions, of which some occur with several answers: the columns of text and those of ratings."""
    questions = rng.randint(0, max(1, count * 2 // 3), count)
    kind, topic, site, asker = (
        rng.randint(0, choices, count)[questions]
        for choices in (len(OPENINGS), len(TOPICS.split("|")), len(SITES), len(USERS))
    )
    body_length, answer_length = rng.randint(3, 60, (2, count))
    bodies = _texts(rng, body_length)
    hosts, topics = np.array(list(SITES))[site].tolist(), TOPICS.split("|")
    answerer = rng.randint(0, len(USERS), count)
    texts = {
        "question_title": [f"{OPENINGS[a]} {topics[b]}?" for a, b in zip(kind, topic, strict=True)],
        "question_body": [bodies[question] for question in questions],
        "question_user_name": [USERS[user] for user in asker],
        "question_user_page": [f"https://{host}/users/{user}" for host, user in zip(hosts, asker, strict=True)],
        "answer": _texts(rng, answer_length),
        "answer_user_name": [USERS[user] for user in answerer],
        "answer_user_page": [f"https://{host}/users/{user}" for host, user in zip(hosts, answerer, strict=True)],
        "url": [f"http://{host}/questions/{number}/" for host, number in zip(hosts, questions, strict=True)],
        "category": [SITES[host] for host in hosts],
        "host": hosts,
    }
    ratings = {}
    for number, name in enumerate(TARGETS):
        length = body_length[questions] if name.startswith("question") else answer_length
        high = kind == number % len(OPENINGS) if "_type_" in name else length > 30
        above, below = rng.randint(2, len(LEVELS), count), rng.randint(0, 3, count)
        if name.startswith("question"):  # a question is rated alike whatever the answer
            above, below = above[questions], below[questions]
        level = np.where(high, above, below)
        if name == "question_type_spelling":  # as rare as in the original
            level = np.isin(questions, rng.permutation(questions)[: max(2, count // 150)]).astype(int)
        ratings[name] = np.array(LEVELS)[level].tolist()
    return texts, ratings


def _texts(rng: np.random.RandomState, lengths: np.ndarray) -> list[str]:
    words = np.array(WORDS.split(" "))
    return joined(words[rng.randint(0, len(words), int(lengths.sum()))], lengths)
