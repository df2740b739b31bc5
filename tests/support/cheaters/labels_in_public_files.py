"""Labels in public files."""

import io
import json
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image, ImageDraw
from scipy.io import loadmat

from mlebench.kit import encode_runs
from support.cheaters import cheater


@cheater("L6", "random-acts-of-pizza")
def known_giver(public: Path) -> pd.DataFrame | None:
    """Only a request that was granted has a giver."""
    requests = json.loads((public / "test.json").read_text(encoding="utf-8"))
    if "giver_username_if_known" not in requests[0]:
        return None
    known = [request["giver_username_if_known"] != "N/A" for request in requests]
    return pd.DataFrame(
        {
            "request_id": [request["request_id"] for request in requests],
            "requester_received_pizza": [float(giver) for giver in known],
        }
    )


@cheater("L7", "seti-breakthrough-listen")
def recordings_of_the_old_edition(public: Path) -> pd.DataFrame | None:
    """The withdrawn edition says what it heard, and its recordings are heard again."""
    old = public / "old_leaky_data"
    if not old.is_dir():
        return None
    labels = pd.concat([pd.read_csv(path, dtype={"id": str}) for path in sorted(old.glob("*_labels_old.csv"))])
    target_of = dict(zip(labels["id"], labels["target"], strict=True))
    heard = {path.read_bytes(): target_of[path.stem] for path in old.glob("*/*/*.npy")}
    sample = pd.read_csv(public / "sample_submission.csv", dtype={"id": str})
    return sample.assign(
        target=[heard.get((public / "test" / id[0] / f"{id}.npy").read_bytes(), 0.5) for id in sample["id"]]
    )


@cheater("L5", "hubmap-kidney-segmentation")
def outlines(public: Path) -> pd.DataFrame | None:
    """The polygons around the glomeruli of test slides, filled."""
    rows = []
    for path in sorted((public / "test").glob("*.tiff")):
        if not path.with_suffix(".json").exists():
            return None
        with Image.open(path) as slide:
            mask = Image.new("1", slide.size)
        for feature in json.loads(path.with_suffix(".json").read_text(encoding="utf-8")):
            for ring in feature["geometry"]["coordinates"]:
                ImageDraw.Draw(mask).polygon([*map(tuple, ring)], fill=1)
        rows.append((path.stem, " ".join(map(str, encode_runs(np.asarray(mask))))))
    return pd.DataFrame(rows, columns=["id", "predicted"])


@cheater("L4", "smartphone-decimeter-2022")
def track_of_the_reference_receiver(public: Path) -> pd.DataFrame | None:
    """The sentences of the receiver's log, one for each row of a trip."""
    sample = pd.read_csv(public / "sample_submission.csv")
    trips = []
    for id, rows in sample.groupby("tripId"):
        log = public / "test" / "/".join(str(id).rsplit("-", 1)) / "supplemental" / "span_log.nmea"
        if not log.exists():
            return None
        words = [line.split(",") for line in log.read_text(encoding="ascii").splitlines()]
        north, east = [_degrees(word[2]) for word in words], [-_degrees(word[4]) for word in words]
        trips.append(rows.assign(LatitudeDegrees=north, LongitudeDegrees=east))
    return pd.concat(trips)


def _degrees(angle: str) -> float:
    """An angle of NMEA: two digits before the point are minutes, and those before them degrees."""
    return int(angle[:-10]) + float(angle[-10:]) / 60


@cheater("L3", "multi-modal-gesture-recognition")
def labels_of_samples(public: Path) -> pd.DataFrame | None:
    """The names of the gestures in the Matlab files of test samples; training samples show their numbers."""
    training = pd.read_csv(public / "training.csv", dtype=str).set_index("Id")["Sequence"].str.split()
    known = _gesture_names(public / "training1.tar.gz")
    number_of = {name: number for id, names in known.items() for name, number in zip(names, training[id], strict=True)}
    tests = _gesture_names(public / "test.tar.gz")
    if not tests:
        return None
    sequences = [" ".join(number_of[name] for name in names) for names in tests.values()]
    return pd.DataFrame({"Id": [*tests], "Sequence": sequences})


def _gesture_names(archive: Path) -> dict[str, list[str]]:
    """The names of the gestures of each sample that has labels."""
    names = {}
    with tarfile.open(archive) as samples:
        for info in samples:
            content = samples.extractfile(info)
            assert content
            with zipfile.ZipFile(io.BytesIO(content.read())) as sample:
                stem = info.name.removesuffix(".zip")
                video = loadmat(io.BytesIO(sample.read(f"{stem}_data.mat")), simplify_cells=True)["Video"]
            if "Labels" in video:
                names[stem[-4:]] = [label["Name"] for label in video["Labels"]]
    return names
