from collections.abc import Iterator

import numpy as np

from mlebench.kit.twins import TwinFolder, csv_pieces, pieces_of

# Topics of questions, and the phrases that stand for them, with their name; later ones are rarer. The last are words
# for a missing value.
TOPICS = {
    "c#": "my C# class",
    "java": "a JVM option",
    "php": "the $_POST array",
    "javascript": "document.getElementById",
    "android": "an Activity",
    "jquery": "$('#id').click()",
    "python": "a list comprehension",
    "c++": "std::vector<int>",
    "html": "a <div> element",
    "mysql": "SELECT * FROM t",
    ".net": "the CLR",
    "ios": "UITableView",
    "asp.net-mvc-3": "a Razor view",
    "regex": r"the pattern ^\d+\s$",
    "node.js": "require('http')",
    "linear-algebra": "an eigenvalue λ ≥ 0",
    "windows-7": r"C:\Users\é",
    "sql-server-2008": "a stored procedure",
    "r": "data.frame()",
    "7zip": "an archive of mine",
    "null": "a NULL pointer",
    "nan": "0/0",
}
OPENINGS = (
    "How do I use",
    "What is wrong with",
    "Is there a way to test",
    "Help with",
    'What does "it" mean for',
    "Why,",
)
FILLER = """the a to of it that error when I try and run this code but does not work on my machine because value returns
    nothing so please, tell me what should happen; "it" isn't & wasn't there &lt;yet&gt; (maybe)"""
MOST_FILLER = 200  # words in a body
PIECE = 50_000  # questions made in one go
TITLES = ("NULL", "None", "007", "404", "1e5", "N/A")  # the whole titles of a few questions
ENDINGS = (
    "",
    "<p>Thanks, Zoë!</p>\n",
    '<pre><code>x = "a, b";\n\n\treturn x;\n</code></pre>\n',
    "<pre><code>one\r\ntwo\r\n</code></pre>\n",
    "<p>I've read 東京.</p>\n\n<blockquote>\n  <p>no</p>\n</blockquote>\n",
)


def twin(raw: TwinFolder) -> None:
    """Signal: every tag of a question has its own phrase, which is mostly in its title or body."""
    known, later = raw.count(400, least=60), raw.count(100)
    _write(raw, "Train", ("Id", "Title", "Body", "Tags"), known, first=1)
    _write(raw, "Test", ("Id", "Title", "Body"), later, first=known + 1)
    ids = [str(number) for number in range(known + 1, known + later + 1)]
    raw.write_csv("SampleSubmission.csv", {"Id": ids, "Tags": ["javascript c# python php java"] * later})


def _write(raw: TwinFolder, name: str, columns: tuple[str, ...], count: int, first: int) -> None:
    def parts() -> Iterator[dict[str, list]]:
        start = first
        for size in pieces_of(count, PIECE):
            questions = _questions(raw.rng, size, start)
            yield {column: questions[column] for column in columns}
            start += size

    raw.write_zip(f"{name}.zip", {f"{name}.csv": csv_pieces(parts(), newline="\r\n", quote_text=True)})


def _questions(rng: np.random.RandomState, count: int, first: int) -> dict[str, list]:
    names = np.array(list(TOPICS), dtype=object)
    phrases = np.array([f"{phrase} in {name}" for name, phrase in TOPICS.items()], dtype=object)
    share = 1 / (1 + np.arange(len(names)))
    topics = rng.choice(len(names), (count, 5), p=share / share.sum())
    how_many, told = rng.randint(1, 6, count), rng.rand(count, 5) < 0.85
    openings, endings = rng.choice(OPENINGS, count), rng.choice(ENDINGS, count)
    ends = np.cumsum(rng.randint(5, MOST_FILLER, count))
    words = np.array(FILLER.split(), dtype=object)
    filler = words[rng.randint(len(words), size=ends[-1])]
    titles, bodies, tags = [], [], []
    for row, (some, opening, between, ending) in enumerate(
        zip(how_many, openings, np.split(filler, ends[:-1]), endings, strict=True)
    ):
        of_row = np.array(list(dict.fromkeys(topics[row, :some])))
        said = phrases[of_row[told[row, : len(of_row)]]].tolist()
        titles.append(f"{opening} {said[0] if said else 'this'}?")
        bodies.append(f"<p>{opening} {' or '.join(said[1:])}?</p>\n\n<p>{' '.join(between)}</p>\n{ending}")
        tags.append(" ".join(names[of_row]))

    # Some questions were asked before, word for word; a few have a title or a single tag that is read as missing.
    again = rng.permutation(count)[: count // 3]
    for row, other in zip(again, rng.permutation(count), strict=False):
        titles[row], bodies[row], tags[row] = titles[other], bodies[other], tags[other]
    for row in rng.permutation(count)[: 2 + count // 50]:
        titles[row] = TITLES[row % len(TITLES)]
    for row in rng.permutation(count)[: 2 + count // 50]:
        tags[row] = ("null", "nan")[row % 2]
    return {"Id": [str(first + row) for row in range(count)], "Title": titles, "Body": bodies, "Tags": tags}
