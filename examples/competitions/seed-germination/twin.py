from mlebench.kit.twins import TwinFolder, rounded


def twin(raw: TwinFolder) -> None:
    """Signal: most seeds germinate near 22 degrees, and more of them in moist soil."""
    count = raw.count(300, least=50)
    temperature = rounded(raw.rng.uniform(5, 40, count), 1)
    moisture = rounded(raw.rng.uniform(0, 100, count), 1)
    chance = 1.2 - abs(temperature - 22) / 8 + (moisture - 50) / 200
    raw.write_csv(
        "seeds.csv",
        {
            "seed_id": [f"s{number:04d}" for number in range(count)],
            "temperature": temperature,
            "moisture": moisture,
            "germinated": (raw.rng.uniform(0, 1, count) < chance).astype(int),
        },
    )
