from collections.abc import Iterator
from typing import Any

import numpy as np

from mlebench.kit.twins import TwinFolder, json_lines_bytes

THINGS = ["lantern", "violin", "comet", "heron", "engine", "bridge", "manuscript", "café_sign", "glacier", "piano"]
CITIES = ["Oslo", "Lima", "Kraków", "東京", "Quito", "Perth", "N/A", "Bergen", "Tunis", "``Paris''", "Turin", "Delhi"]
FINDERS = [
    "Zoë Ünal",
    "Ada Byron",
    "Seán O'Neill",
    'Juanna "Jo" Vines',
    "A. 1/2 B.",
    "Max\\Planck 😀",
    "Li Wei",
    "Iris",
]
NOTHING = {"start_token": -1, "candidate_index": -1, "end_token": -1}
HIDDEN = ("annotations", "document_url")
PARAGRAPHS = 3
YEARS = 90  # an even number: half of the questions that ask for a yes or no get a yes
CHUNK = 1000  # lines; the file is split chunk by chunk


def twin(raw: TwinFolder) -> None:
    """Signal: the answer is in the paragraph that names the thing asked about, after `in` or `by`."""
    count = raw.count(1200, least=100)
    count += count % CHUNK == 1  # a chunk of one line cannot be split
    raw.write("simplified-nq-train.jsonl", b"".join(map(json_lines_bytes, _examples(raw.rng, count))))

    later = [example for some in _examples(raw.rng, raw.count(30)) for example in some]
    shown = [
        {"example_id": str(example["example_id"])}
        | {name: value for name, value in example.items() if name not in (*HIDDEN, "example_id")}
        for example in later
    ]
    raw.write("simplified-nq-test.jsonl", json_lines_bytes(shown))
    ids = sorted(f"{example['example_id']}_{kind}" for example in shown for kind in ("long", "short"))
    raw.write_csv("sample_submission.csv", {"example_id": ids, "PredictionString": [""] * len(ids)})


def _examples(rng: np.random.RandomState, count: int) -> Iterator[list[dict[str, Any]]]:
    for start in range(0, count, CHUNK):
        some = min(CHUNK, count - start)
        things, cities, finders = (rng.rand(some, len(words)).argsort(axis=1) for words in (THINGS, CITIES, FINDERS))
        kinds = rng.choice(["where", "who", "whether", "what"], some, p=[0.4, 0.35, 0.1, 0.15])
        answered = rng.randint(0, 2 * PARAGRAPHS, some)  # the paragraph with the answer; half of the time there is none
        ids = rng.randint(-(2**63), 2**63 - 1, some, dtype=np.int64)
        annotation_ids = rng.randint(0, 2**64 - 1, some, dtype=np.uint64)  # half of them exceed 63 bits
        revisions = rng.randint(10**8, 10**9, some)
        again, asked_before = np.split(rng.permutation(some)[: some // 5 * 2], 2)
        for of_page in (things, cities, finders, revisions):  # other questions about the same page
            of_page[again] = of_page[asked_before]
        revisions[again] += YEARS * rng.randint(0, 2, len(again))  # perhaps about another revision of it
        columns = (things, cities, finders, kinds, answered, ids, annotation_ids, revisions)
        yield [_example(*values) for values in zip(*(column.tolist() for column in columns), strict=True)]


def _example(
    things: list[int],
    cities: list[int],
    finders: list[int],
    kind: str,
    answered: int,
    id: int,
    annotation_id: int,
    revision: int,
) -> dict[str, Any]:
    year = revision % YEARS + 1900
    document = _Document(f"{THINGS[things[0]].title()} finds of {CITIES[cities[0]]} in {year}")
    spans = []
    for place in range(PARAGRAPHS):
        city, second = CITIES[cities[place]], CITIES[cities[-1]] if things[place] % 4 == 0 else None
        spans.append(document.paragraph(THINGS[things[place]], city, second, FINDERS[finders[place]]))
    document.table(CITIES[cities[0]], year)
    asked = THINGS[things[answered]]  # past the paragraphs, it is something that no paragraph mentions
    city = CITIES[cities[(answered + revision % 2) % len(cities)]]  # right every other time
    annotation = {
        "yes_no_answer": "NONE",
        "long_answer": NOTHING,
        "short_answers": [],
        "annotation_id": annotation_id,
    }
    if answered < PARAGRAPHS:
        annotation["long_answer"] = document.candidate(answered)
        annotation["short_answers"] = spans[answered].get(kind, [])
        if kind == "whether":
            annotation["yes_no_answer"] = "NO" if revision % 2 else "YES"
    questions = {
        "where": f"where was the {asked} found",
        "who": f"who found the {asked}",
        "whether": f"was the {asked} first found in {city}",
        "what": f"what is there to know about the {asked} / its find",
    }
    return {
        "document_text": " ".join(document.tokens),
        "long_answer_candidates": document.candidates,
        "question_text": questions[kind],
        "annotations": [annotation],
        "document_url": f"https://en.wikipedia.org//w/index.php?title={document.title}&amp;oldid={revision}",
        "example_id": id,
    }


class _Document:
    """Tokens of a page, and the spans of them that could be a long answer."""

    def __init__(self, title: str):
        self.title = title.replace(" ", "_")
        self.tokens = [*title.split(), "-", "Wikipedia", "<H1>", *title.split(), "</H1>"]
        self.candidates: list[dict[str, Any]] = []

    def paragraph(self, thing: str, city: str, second_city: str | None, finder: str) -> dict[str, list[dict[str, int]]]:
        """Where the answers to `where` and `who` are in it."""
        start = len(self.tokens)
        self.tokens += ["<P>", "The", thing, "was", "found", "in"]
        where = [self._add(city)]
        if second_city:
            self.tokens += ["and", "then", "in"]
            where.append(self._add(second_city))
        self.tokens += ["by"]
        who = [self._add(finder)]
        self.tokens += [".", "</P>"]
        self._offer(start, top_level=True)
        return {"where": where, "who": who}

    def table(self, city: str, year: int) -> None:
        """A table, and its rows as spans inside it."""
        place = len(self.candidates)
        start = len(self.tokens)
        self.tokens += ["<Table>"]
        for name, value in (("City", city), ("Year", str(year))):
            row = len(self.tokens)
            self.tokens += ["<Tr>", "<Th>", name, "</Th>", "<Td>", value, "</Td>", "</Tr>"]
            self._offer(row, top_level=False)
        self.tokens += ["</Table>"]
        self._offer(start, top_level=True)
        self.candidates.insert(place, self.candidates.pop())

    def candidate(self, number: int) -> dict[str, int]:
        span = self.candidates[number]
        return {"start_token": span["start_token"], "candidate_index": number, "end_token": span["end_token"]}

    def _add(self, words: str) -> dict[str, int]:
        start = len(self.tokens)
        self.tokens += words.split()
        return {"start_token": start, "end_token": len(self.tokens)}

    def _offer(self, start: int, *, top_level: bool) -> None:
        self.candidates.append({"start_token": start, "top_level": top_level, "end_token": len(self.tokens)})
