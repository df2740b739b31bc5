from mlebench.kit.twins import TwinFolder, rounded


def twin(raw: TwinFolder) -> None:
    """Signal: the weight grows with the square of the length, and golden fish are heavier."""
    count = raw.count(200, least=20)
    length = rounded(raw.rng.uniform(10, 30, count), 1)
    colour = raw.rng.choice(["silver", "gold", "brown"], count)
    weight = 0.8 * length**2 + 40 * (colour == "gold") + raw.rng.normal(0, 15, count)
    gaps = raw.rng.rand(count) < 0.05
    raw.write_csv(
        "fish.csv",
        {
            "fish_id": [f"f{number:05d}" for number in range(count)],
            "length_cm": [None if unknown else value for value, unknown in zip(length.tolist(), gaps, strict=True)],
            "colour": colour,
            "weight_g": rounded(weight, 1),
        },
    )
