import numpy as np

from mlebench.kit.twins import TwinFolder, csv_bytes, hex_ids, wav_bytes

RATE = 44_100  # samples per second, as in the original
LENGTH = 120  # samples of a clip; up to half a minute's worth in the original
NAMES = """Accelerating_and_revving_and_vroom Accordion Acoustic_guitar Applause Bark Bass_drum Bass_guitar
    Bathtub_(filling_or_washing) Bicycle_bell Burping_and_eructation Bus Buzz Car_passing_by Cheering
    Chewing_and_mastication Child_speech_and_kid_speaking Chink_and_clink Chirp_and_tweet Church_bell Clapping
    Computer_keyboard Crackle Cricket Crowd Cupboard_open_or_close Cutlery_and_silverware
    Dishes_and_pots_and_pans Drawer_open_or_close Drip Electric_guitar Fart Female_singing
    Female_speech_and_woman_speaking Fill_(with_liquid) Finger_snapping Frying_(food) Gasp Glockenspiel Gong
    Gurgling Harmonica Hi-hat Hiss Keys_jangling Knock Male_singing Male_speech_and_man_speaking
    Marimba_and_xylophone Mechanical_fan Meow Microwave_oven Motorcycle Printer Purr Race_car_and_auto_racing
    Raindrop Run Scissors Screaming Shatter Sigh Sink_(filling_or_washing) Skateboard Slam Sneeze Squeak Stream
    Strum Tap Tick-tock Toilet_flush Traffic_noise_and_roadway_noise Trickle_and_dribble Walk_and_footsteps
    Water_tap_and_faucet Waves_and_surf Whispering Writing Yell Zipper_(clothing)"""
CLASSES = NAMES.split()


def twin(raw: TwinFolder) -> None:
    """Signal: every class is a tone with its own pitch; a third of the noisy training clips have a wrong label."""
    # The test clips of the first stage are no longer available, but their labels were published with the others.
    sizes = {"train_curated": 160, "train_noisy": 160, "test": 80, "first_stage": 30}
    counts = {part: raw.count(size, least=size // 4) for part, size in sizes.items()}
    names = iter(hex_ids(raw.rng, sum(counts.values()), digits=8))
    labels: dict[str, dict[str, str]] = {}
    for part, count in counts.items():
        labels[part] = {}
        for _ in range(count):
            name, heard = f"{next(names)}.wav", _classes(raw.rng)
            if part != "first_stage":
                raw.write(f"{part}/{name}", _clip(raw.rng, heard))
            said = _classes(raw.rng) if part == "train_noisy" and raw.rng.rand() < 1 / 3 else heard
            labels[part][name] = ",".join(CLASSES[number] for number in said)

    train = {part: _columns(labels[part]) for part in ("train_curated", "train_noisy")}
    for part, columns in train.items():
        raw.write_csv(f"{part}.csv", columns)
    tested = sorted(labels["test"])
    raw.write_csv("sample_submission.csv", {"fname": tested, **{name: [0] * len(tested) for name in CLASSES}})
    published = {**train, "test": _published(raw.rng, labels["test"], labels["first_stage"])}
    files = {f"{part}_post_competition.csv": csv_bytes(columns) for part, columns in published.items()}
    raw.write_zip("FSDKaggle2019.meta.zip", {f"FSDKaggle2019.meta/{name}": content for name, content in files.items()})


def _columns(labels: dict[str, str]) -> dict[str, list]:
    return {"fname": list(labels), "labels": list(labels.values())}


def _published(rng: np.random.RandomState, private: dict[str, str], public: dict[str, str]) -> dict[str, list]:
    """What was published about the test clips of both stages, in one table and no order."""
    labels = private | public
    names = rng.permutation(sorted(labels)).tolist()
    licenses = ["Creative Commons 0", "Attribution", 'Sampling+, "as is"']
    return _columns({name: labels[name] for name in names}) | {
        "usage": ["Private" if name in private else "Public" for name in names],
        "freesound_id": rng.randint(100, 450_000, len(names)).tolist(),
        "license": rng.choice(licenses, len(names)).tolist(),
    }


def _classes(rng: np.random.RandomState) -> list[int]:
    """The classes of a clip, in any order; most have one."""
    return rng.choice(len(CLASSES), rng.choice([1, 2, 3], p=[0.8, 0.15, 0.05]), replace=False).tolist()


def _clip(rng: np.random.RandomState, classes: list[int]) -> bytes:
    pitches = 400 + 250 * np.array(classes)[:, None]  # cycles per second
    samples = rng.normal(0, 200, LENGTH) + 4_000 * np.sin(2 * np.pi * pitches * np.arange(LENGTH) / RATE).sum(axis=0)
    return wav_bytes(samples.round(), RATE)
