from typing import NamedTuple

import numpy as np

from mlebench.kit.twins import TwinFolder, hex_ids


class Language(NamedTuple):
    """Words to make passages from, and patterns of a sentence and of the question it answers."""

    share: float
    names: str
    facts: str
    answers: str
    fillers: str
    sentence: str
    question: str


LANGUAGES = {
    "hindi": Language(
        share=0.67,
        names="भारत|दिल्ली|कबीर|ताज महल|गंगा|DNA|मुंबई (बंबई)|सूर्य",
        facts="राजधानी|जन्म|लंबाई|क्षेत्रफल|स्थापना|रचयिता",
        answers="15 अगस्त 1947|1861|नई दिल्ली|206|मोहनदास करमचन्द गाँधी|२,५२५ किलोमीटर|8.4|शाहजहाँ",
        fillers="और|यह|एक|में|के|है,|था।|नदी|लोग|बहुत|“प्राचीन”|साथ|काल[1]",
        sentence="{name} की {fact} {answer} है।",
        question="{name} की {fact} क्या है?",
    ),
    "tamil": Language(
        share=0.33,
        names="தமிழ்நாடு|சென்னை|திருவள்ளுவர்|காவிரி|இலங்கை|மதுரை|புத்தர்",
        facts="தலைநகரம்|பிறப்பு|பரப்பளவு|நீளம்|ஆசிரியர்",
        answers="சென்னை|1330|கி.மு. 563|800 கி.மீ|பெரியார் ஈ. வெ. இராமசாமி|22,327,000|1948",
        fillers='மற்றும்|இது|ஒரு|உள்ளது.|ஆகும்,|மக்கள்|"பழைய"|ஆறு|காலம்|பெரிய[2]',
        sentence="{name} {fact} {answer} ஆகும்.",
        question="{name} {fact} என்ன?",
    ),
}


def twin(raw: TwinFolder) -> None:
    """Signal: the answer follows the first words of the question in the passage."""
    columns = _passages(raw.rng, raw.count(200, least=60))
    raw.write_csv("train.csv", columns)

    later = _passages(raw.rng, raw.count(20))
    raw.write_csv("test.csv", {name: later[name] for name in ("id", "context", "question", "language")})
    raw.write_csv("sample_submission.csv", {"id": later["id"], "PredictionString": [None] * len(later["id"])})


def _passages(rng: np.random.RandomState, count: int) -> dict[str, list]:
    languages = rng.choice(list(LANGUAGES), count, p=[language.share for language in LANGUAGES.values()])
    columns: dict[str, list] = {
        name: [] for name in ("id", "context", "question", "answer_text", "answer_start", "language")
    }
    columns["id"] = hex_ids(rng, count, digits=9)
    for name in languages.tolist():
        context, question, answer, start = _passage(rng, LANGUAGES[name])
        columns["context"].append(context)
        columns["question"].append(question)
        columns["answer_text"].append(answer)
        columns["answer_start"].append(start)
        columns["language"].append(name)
    return columns


def _passage(rng: np.random.RandomState, language: Language) -> tuple[str, str, str, int]:
    """A passage of some lines with one sentence that gives the answer: passage, question, answer and its position."""
    names, facts, answers, fillers = (words.split("|") for words in language[1:5])
    name, fact, answer = (words[rng.randint(len(words))] for words in (names, facts, answers))
    before, after = (
        "\n".join(" ".join(fillers[word] for word in line) for line in rng.randint(0, len(fillers), (lines, 12)))
        for lines in rng.randint(1, 4, 2)
    )
    lead, _, rest = language.sentence.format(name=name, fact=fact, answer="|").partition("|")
    start = len(before) + 1 + len(lead)
    return f"{before}\n{lead}{answer}{rest}\n\n{after}", language.question.format(name=name, fact=fact), answer, start
