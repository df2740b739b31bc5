import numpy as np

from mlebench.kit.twins import TwinFolder, hex_ids

SCORES = ("0.00", "0.25", "0.50", "0.75", "1.00")
SECTIONS = ("A47", "B60", "C08", "D06", "E04", "F16", "G06", "H04")
NOUNS = "abatement layer housing valve phase antenna résumé α-olefin polymer filter beam coating lens rotor"
MODIFIERS = "of pollution|optical|3d|plate type|distributed|non-linear|of 1e5|control, remote|acid|'dry'|inner|NULL"


def twin(raw: TwinFolder) -> None:
    """Signal: the more words two phrases share, the higher their score."""
    columns = _pairs(raw.rng, raw.count(500, least=60))
    raw.write_csv("train.csv", columns)

    later = _pairs(raw.rng, raw.count(36))
    del later["score"]
    raw.write_csv("test.csv", later)
    raw.write_csv("sample_submission.csv", {"id": later["id"], "score": [0] * len(later["id"])})


def _pairs(rng: np.random.RandomState, count: int) -> dict[str, list[str]]:
    """Each phrase is a modifier before or after a noun; 0, 1 or 2 of the two are kept in its partner."""
    nouns, modifiers = np.array(NOUNS.split()), np.array(MODIFIERS.split("|"))
    noun, modifier = rng.randint(0, len(nouns), count), rng.randint(0, len(modifiers), count)
    keeps_noun, keeps_modifier = rng.rand(2, count) < 0.5
    other_noun = np.where(keeps_noun, noun, rng.randint(0, len(nouns), count))
    other_modifier = np.where(keeps_modifier, modifier, rng.randint(0, len(modifiers), count))
    alike = (noun == other_noun) * 2 + (modifier == other_modifier)
    score = np.clip(alike + rng.choice([-1, 0, 0, 1], count), 0, len(SCORES) - 1)
    targets = [" ".join(pair) for pair in zip(modifiers[other_modifier], nouns[other_noun], strict=True)]
    for row in np.flatnonzero(rng.rand(count) < 0.01):
        targets[row] = "NULL"  # a modifier by itself, which reads like a missing value
    return {
        "id": hex_ids(rng, count, digits=16),
        "anchor": [" ".join(pair) for pair in zip(nouns[noun], modifiers[modifier], strict=True)],
        "target": targets,
        "context": rng.choice(SECTIONS, count).tolist(),
        "score": np.array(SCORES)[score].tolist(),
    }
