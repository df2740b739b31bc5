import numpy as np

from mlebench.kit.twins import TwinFolder, parquet_bytes, rounded

CLASSES = ("Seizure", "LPD", "GPD", "LRDA", "GRDA", "Other")
VOTES = [f"{name.lower()}_vote" for name in CLASSES]
HERTZ = (12.0, 1.0, 2.0, 3.0, 5.0, 8.0)  # of the waves of each class
LEFT = ("Fp1", "F3", "C3", "P3", "F7", "T3", "T5", "O1")
RIGHT = ("Fp2", "F4", "C4", "P4", "F8", "T4", "T6", "O2")
ELECTRODES = (*LEFT, "Fz", "Cz", "Pz", *RIGHT, "EKG")
REGIONS = ("LL", "RL", "LP", "RP")  # left and right, lateral and parasagittal
SECONDS, SAMPLES_PER_SECOND = 2, 40  # of an EEG; the original has at least 50, and 200


def twin(raw: TwinFolder) -> None:
    """Signal: waves are fast in seizures and slow in every other pattern, in EEGs and in spectrograms.

    All recordings of a patient are of one kind.
    """
    rng, count = raw.rng, raw.count(24, least=16)
    spectrogram_ids, patients = rng.permutation(50 * count)[:count] * 1_009 + 353_733, rng.randint(0, count, count)
    kinds = rng.choice(len(CLASSES), count, p=[0.2, 0.14, 0.16, 0.15, 0.17, 0.18])[patients]
    for id, kind in zip(spectrogram_ids.tolist(), kinds, strict=True):
        raw.write(f"train_spectrograms/{id}.parquet", _spectrogram(rng, kind))

    spectrogram = rng.permutation(np.repeat(np.arange(count), rng.randint(1, 4, count)))  # of each EEG
    eeg_ids = rng.permutation(50 * len(spectrogram))[: len(spectrogram)] * 200_003 + 568_657
    for id, kind in zip(eeg_ids.tolist(), kinds[spectrogram], strict=True):
        raw.write(f"train_eegs/{id}.parquet", _eeg(rng, kind))

    eeg = np.repeat(np.arange(len(eeg_ids)), rng.choice([1, 2, 3, 5, 9], len(eeg_ids)))  # of each row
    sub_id = np.arange(len(eeg)) - np.searchsorted(eeg, eeg)
    offset = np.where(sub_id, 2.0 * sub_id + rng.randint(0, 2, len(eeg)), 0.0)
    votes = _votes(rng, kinds[spectrogram], eeg)
    columns = {
        "eeg_id": eeg_ids[eeg],
        "eeg_sub_id": sub_id,
        "eeg_label_offset_seconds": offset,
        "spectrogram_id": spectrogram_ids[spectrogram[eeg]],
        "spectrogram_sub_id": sub_id,
        "spectrogram_label_offset_seconds": offset + 2 * rng.randint(0, 50, len(eeg_ids))[eeg],
        "label_id": rng.permutation(40 * len(eeg))[: len(eeg)] * 4_001 + 338,
        "patient_id": patients[spectrogram[eeg]] * 7 + 42_516,
        "expert_consensus": np.array(CLASSES)[votes.argmax(axis=1)],
        **dict(zip(VOTES, votes.T, strict=True)),
    }
    raw.write_csv("train.csv", columns)

    later = {"spectrogram_id": [853_520], "eeg_id": [3_911_565_283], "patient_id": [6_885]}  # one, as in the original
    raw.write_csv("test.csv", later)
    raw.write_csv("sample_submission.csv", {"eeg_id": later["eeg_id"], **{name: ["0.166666667"] for name in VOTES}})
    raw.write("test_eegs/3911565283.parquet", _eeg(rng, 0))
    raw.write("test_spectrograms/853520.parquet", _spectrogram(rng, 0))
    for name in CLASSES[:-1]:
        raw.write(f"example_figures/{name.lower()}_ideal.pdf", _pdf(name))


def _votes(rng: np.random.RandomState, kinds: np.ndarray, eeg: np.ndarray) -> np.ndarray:
    """Of 3 to 15 experts most vote for the EEG's kind; occasionally the rows of one EEG have different votes."""
    experts = rng.randint(3, 16, len(kinds))
    minority = rng.binomial(experts, 0.2)
    second = rng.randint(0, len(CLASSES), len(kinds))
    differs = rng.rand(len(eeg)) < 0.3
    moved = np.where(differs, rng.randint(0, 3, len(eeg)), 0)
    few = np.minimum(minority[eeg] + moved, experts[eeg])
    votes = np.zeros((len(eeg), len(CLASSES)), dtype=int)
    votes[np.arange(len(eeg)), kinds[eeg]] = experts[eeg] - few
    votes[np.arange(len(eeg)), second[eeg]] += few
    return votes


def _eeg(rng: np.random.RandomState, kind: int) -> bytes:
    """Microvolts of each electrode."""
    seconds = np.arange(SECONDS * SAMPLES_PER_SECOND) / SAMPLES_PER_SECOND
    wave = 60 * np.sin(2 * np.pi * (HERTZ[kind] * seconds + rng.rand()))
    microvolts = rounded(wave[:, None] + rng.normal(0, 20, (len(seconds), len(ELECTRODES))), 2).astype(np.float32)
    return parquet_bytes(dict(zip(ELECTRODES, microvolts.T, strict=True)))


def _spectrogram(rng: np.random.RandomState, kind: int) -> bytes:
    """Power of each region at some frequencies, every two seconds; the original has a hundred frequencies."""
    power: dict[str, np.ndarray] = {"time": np.arange(1, 13, 2)}
    for region in REGIONS:
        for hertz in sorted(HERTZ):
            strong = 50 if hertz == HERTZ[kind] else 1
            power[f"{region}_{hertz:.2f}"] = rounded(strong * rng.gamma(2, size=6), 2).astype(np.float32)
    return parquet_bytes(power)


def _pdf(title: str) -> bytes:
    """A document with one empty page."""
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 72 72] >>",
        f"<< /Title ({title}) >>",
    ]
    body, offsets = "%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    end = f"trailer << /Size 5 /Root 1 0 R /Info 4 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
    return f"{body}xref\n0 5\n0000000000 65535 f \n{table}{end}".encode("ascii")
