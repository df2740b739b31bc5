import numpy as np

from mlebench.kit.twins import TwinFolder, rounded

# Name: lowest and highest value.
MEASURES = {
    "Chi1": (2.4, 70.0),
    "Chi1n": (1.2, 60.0),
    "Chi1v": (1.2, 60.0),
    "Chi2n": (0.6, 50.0),
    "Chi2v": (0.6, 50.0),
    "Chi3v": (0.2, 40.0),
    "Chi4n": (0.05, 30.0),
    "EState_VSA1": (0.0, 360.0),
    "EState_VSA2": (0.0, 250.0),
    "ExactMolWt": (60.0, 2200.0),
    "FpDensityMorgan1": (0.1, 2.0),
    "FpDensityMorgan2": (0.2, 3.0),
    "FpDensityMorgan3": (0.3, 3.5),
    "HallKierAlpha": (-8.0, 1.2),
    "HeavyAtomMolWt": (50.0, 2000.0),
    "Kappa3": (0.4, 65.0),
    "MaxAbsEStateIndex": (2.9, 15.5),
    "MinEStateIndex": (-6.4, 1.4),
}
AREAS = ("PEOE_VSA10", "PEOE_VSA14", "PEOE_VSA6", "PEOE_VSA7", "PEOE_VSA8", "SMR_VSA10", "SMR_VSA5", "SlogP_VSA3")
OTHER_LABELS = {"EC3": 0.31, "EC4": 0.28, "EC5": 0.14, "EC6": 0.16}  # and how often they are set


def twin(raw: TwinFolder) -> None:
    """Signal: large, branched molecules (BertzCT) are mostly EC1; those with a carboxyl group are mostly EC2."""
    rows = raw.count(400, least=200)
    raw.write_csv("train.csv", _molecules(raw.rng, rows, first_id=0))

    later = _molecules(raw.rng, raw.count(100), first_id=rows)
    for name in ("EC1", "EC2", *OTHER_LABELS):
        del later[name]
    raw.write_csv("test.csv", later)
    guess = np.full(len(later["id"]), 0.5)
    raw.write_csv("sample_submission.csv", {"id": later["id"], "EC1": guess, "EC2": guess})


def _molecules(rng: np.random.RandomState, count: int, first_id: int) -> dict[str, np.ndarray]:
    size = rng.rand(count)
    acids = rng.randint(0, 4, count)
    small = np.array([0.0, 1e-06, 2.5e-05, 0.000123])  # some of these print in exponent form
    return {
        "id": np.arange(first_id, first_id + count),
        "BertzCT": rounded(10 + 1500 * size),
        **{name: rounded(low + (high - low) * rng.rand(count)) for name, (low, high) in MEASURES.items()},
        "NumHeteroatoms": rng.randint(1, 30, count),
        # Most molecules have no surface of a given kind.
        **{name: np.where(rng.rand(count) < 0.5, 0, rounded(120 * rng.rand(count))) for name in AREAS},
        "VSA_EState9": np.where(rng.rand(count) < 0.1, rng.choice(small, count), rounded(80 * rng.rand(count) - 5)),
        "fr_COO": acids,
        "fr_COO2": acids,
        "EC1": _flags(rng, 0.4 + 0.5 * (size > 0.4)),
        "EC2": _flags(rng, np.where(acids > 0, 0.9, 0.4)),
        **{name: _flags(rng, np.full(count, share)) for name, share in OTHER_LABELS.items()},
    }


def _flags(rng: np.random.RandomState, chance: np.ndarray) -> np.ndarray:
    return (rng.rand(len(chance)) < chance).astype(int)
