import numpy as np

from mlebench.kit import split_rows
from mlebench.kit.twins import TwinFolder

SPENDING = ("RoomService", "FoodCourt", "ShoppingMall", "Spa", "VRDeck")


def twin(raw: TwinFolder) -> None:
    """Signal: passengers in cryosleep are mostly transported, those who spend much in the spa mostly are not.

    Who travels with a test passenger of the reference's split shares the fate of that passenger.
    """
    columns = _passengers(raw.rng, raw.count(400, least=30))
    _share_fates(columns["PassengerId"], columns["Transported"])
    raw.write_csv("train.csv", columns)

    later = _passengers(raw.rng, raw.count(100))
    later["PassengerId"] = [f"9{id[1:]}" for id in later["PassengerId"]]
    del later["Transported"]
    raw.write_csv("test.csv", later)
    raw.write_csv(
        "sample_submission.csv",
        {"PassengerId": later["PassengerId"], "Transported": ["False"] * len(later["PassengerId"])},
    )


def _share_fates(ids: list[str], transported: list[str]) -> None:
    groups = [id.partition("_")[0] for id in ids]
    train, test = split_rows(list(range(len(ids))), test_size=0.1, seed=0)
    fates = {groups[row]: transported[row] for row in test}
    for row in train:
        transported[row] = fates.get(groups[row], transported[row])


def _passengers(rng: np.random.RandomState, count: int) -> dict[str, list]:
    groups = np.sort(rng.randint(1, count, size=count))
    number = [int((groups[:row] == group).sum()) + 1 for row, group in enumerate(groups)]
    asleep = rng.rand(count) < 0.36
    spending = {name: np.where(asleep, 0, rng.exponential(300, count).astype(int)) for name in SPENDING}
    odds = np.where(asleep, 0.85, 0.55 - 0.4 * (spending["Spa"] > 250))
    columns: dict[str, list] = {
        "PassengerId": [f"{group:04d}_{place:02d}" for group, place in zip(groups, number, strict=True)],
        "HomePlanet": list(rng.choice(["Earth", "Europa", "Mars"], count)),
        "CryoSleep": [str(bool(value)) for value in asleep],
        "Cabin": [
            f"{deck}/{row}/{side}"
            for deck, row, side in zip(
                rng.choice(list("ABCDEFGT"), count),
                rng.randint(0, 1900, count),
                rng.choice(["P", "S"], count),
                strict=True,
            )
        ],
        "Destination": list(rng.choice(["TRAPPIST-1e", "PSO J318.5-22", "55 Cancri e"], count)),
        "Age": [float(age) for age in rng.randint(0, 80, count)],
        "VIP": [str(bool(value)) for value in rng.rand(count) < 0.03],
        **{name: [float(value) for value in values] for name, values in spending.items()},
        "Name": list(
            rng.choice(["Maham Ofracculy", 'Juanna "Jo" Vines', "Altark Susent", "Solam, Susent", "Zoë Ünal"], count)
        ),
        "Transported": [str(bool(value)) for value in rng.rand(count) < odds],
    }
    for name, cells in columns.items():  # about one cell in fifty is empty, in every column but two
        if name not in ("PassengerId", "Transported"):
            columns[name] = [None if gap else cell for cell, gap in zip(cells, rng.rand(count) < 0.02, strict=True)]
    return columns
