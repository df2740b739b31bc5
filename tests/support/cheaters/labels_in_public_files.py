"""Labels in public files."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image, ImageDraw

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
