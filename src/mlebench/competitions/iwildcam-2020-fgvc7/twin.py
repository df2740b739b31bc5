from typing import Any

import numpy as np

from mlebench.kit import join_text
from mlebench.kit.twins import (
    TwinFolder,
    camera_trap_frames,
    camera_trap_picture,
    hex_ids,
    json_bytes,
    records_of,
    rounded,
)

ID_TAIL = "-21bc-11ea-a13a-137349068a90"
NAMES = {
    0: "empty",
    2: "tayassu pecari",
    3: "dasyprocta punctata",
    73: "tragelaphus scriptus",
    96: "crax rubra",
    372: "panthera pardus",
    571: "leopardus pardalis",
    675: "turdus «sp.»",
}
LATER_ONLY = 675
INFO = {"year": "2019", "description": "Camera traps", "version": "1.0", "contributor": "Société d'été"}
Record = dict[str, Any]


def twin(raw: TwinFolder) -> None:
    """Signal: each species is a patch of its own colour on its camera's background; a third of all frames are empty."""
    species = [id for id in NAMES if id not in (0, LATER_ONLY)]
    cameras = raw.rng.permutation(raw.count(50, least=40))[: raw.count(40, least=30)]  # numbers with gaps
    images, shown = _frames(raw, "train", raw.count(240, least=120), cameras, species)
    later, _ = _frames(raw, "test", raw.count(40), cameras + raw.count(50, least=40), [*species, LATER_ONLY])
    _leave_gaps(images)

    categories = [{"count": shown.count(id), "id": id, "name": name} for id, name in NAMES.items()]
    training = {"annotations": _annotations(raw.rng, images, shown), "images": images, "categories": categories}
    uncounted = {"id": 1, "name": "unknown"}
    raw.write("iwildcam2020_train_annotations.json", json_bytes({**training, "info": INFO}))
    raw.write(
        "iwildcam2020_test_information.json",
        json_bytes({"images": later, "categories": [uncounted, *categories], "info": INFO}),
    )
    raw.write("iwildcam2020_megadetector_results.json", json_bytes(_detections(raw.rng, [*images, *later])))
    guesses = raw.rng.randint(0, 676, len(later))
    raw.write_csv("sample_submission.csv", {"Id": [image["id"] for image in later], "Category": guesses})


def _frames(
    raw: TwinFolder, folder: str, count: int, cameras: np.ndarray, species: list[int]
) -> tuple[list[Record], list[int]]:
    """Records of images and what they show; the images themselves go into a folder."""
    facts = camera_trap_frames(raw.rng, count, cameras=cameras, species=species, id_tail=ID_TAIL)
    columns = {
        "seq_num_frames": facts["burst_length"],
        "location": facts["camera"],
        "datetime": join_text(facts["time"], ".000"),
        "id": facts["id"],
        "frame_num": facts["place_in_burst"],
        "seq_id": facts["burst"],
        "width": np.full(count, 1920),
        "height": raw.rng.choice([1080, 1440], count),
        "file_name": join_text(facts["id"], ".jpg"),
    }
    categories = facts["category"].tolist()
    for id, camera, category in zip(facts["id"], facts["camera"].tolist(), categories, strict=True):
        raw.write(f"{folder}/{id}.jpg", camera_trap_picture(raw.rng, camera, category))
    return records_of(columns), categories


def _leave_gaps(images: list[Record]) -> None:
    """The original has none, but what a data frame makes of them is part of how its JSON came about."""
    del images[0]["width"]
    images[1]["height"] = None
    images[2]["datetime"] = None
    del images[3]["datetime"]
    images[4]["corrupt"] = True
    images[5]["celsius"] = 21


def _annotations(rng: np.random.RandomState, images: list[Record], categories: list[int]) -> list[Record]:
    ids = join_text(np.array(hex_ids(rng, len(images), 8)), ID_TAIL)
    return [
        {"count": 1, "image_id": images[row]["id"], "id": ids[row], "category_id": categories[row]}
        for row in rng.permutation(len(images))
    ]


def _detections(rng: np.random.RandomState, images: list[Record]) -> Record:
    confidences, boxes = rounded(rng.rand(len(images)), 3).tolist(), rounded(rng.rand(len(images), 4), 4).tolist()
    return {
        "images": [
            {
                "detections": [{"category": "1", "bbox": box, "conf": confidence}],
                "id": image["id"],
                "max_detection_conf": confidence,
            }
            for image, confidence, box in zip(images, confidences, boxes, strict=True)
        ],
        "detection_categories": {"1": "animal", "2": "person"},
        "info": {"detection_completion_time": "2020-01-10 10:11:12", "detector": "v3", "format_version": "1.0"},
    }
