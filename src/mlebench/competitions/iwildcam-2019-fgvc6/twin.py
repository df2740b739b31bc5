from typing import Any

import numpy as np

from mlebench.kit import join_text
from mlebench.kit.twins import TwinFolder, camera_trap_frames, camera_trap_picture

SPECIES = (1, 3, 4, 8, 10, 11, 13, 14, 16, 17, 18, 19)  # those of the training region, out of 22 with numbers
LATER_SPECIES = (1, 2, 6, 12, 22)


def twin(raw: TwinFolder) -> None:
    """Signal: each animal is a patch of its own colour on its camera's background; a third of the frames are empty."""
    cameras = raw.rng.permutation(raw.count(46, least=30))[: raw.count(30, least=20)]  # numbers with gaps
    raw.write_csv("train.csv", _frames(raw, "train_images.zip", raw.count(240, least=120), cameras, SPECIES))

    later = _frames(raw, "test_images.zip", raw.count(40), cameras + raw.count(46, least=30), LATER_SPECIES)
    del later["category_id"]
    raw.write_csv("test.csv", later)
    raw.write_csv("sample_submission.csv", {"Id": later["id"], "Category": [0] * len(later["id"])})


def _frames(raw: TwinFolder, archive: str, count: int, cameras: np.ndarray, species: tuple[int, ...]) -> dict[str, Any]:
    """The columns of a table; its pictures go into an archive."""
    facts = camera_trap_frames(raw.rng, count, cameras=cameras, species=species, id_tail="-23d2-11e8-a6a3-ec086b02610b")
    shown = zip(facts["id"], facts["camera"].tolist(), facts["category"].tolist(), strict=True)
    raw.write_zip(
        archive, {f"{id}.jpg": camera_trap_picture(raw.rng, camera, category) for id, camera, category in shown}
    )
    return {
        "category_id": facts["category"],
        "date_captured": facts["time"],
        "file_name": join_text(facts["id"], ".jpg"),
        "frame_num": facts["place_in_burst"] + 1,
        "id": facts["id"],
        "location": facts["camera"],
        "rights_holder": raw.rng.choice(["Justin Brown", "Erin Boydston"], count),
        "seq_id": facts["burst"],
        "seq_num_frames": facts["burst_length"],
        "width": np.full(count, 1024),
        "height": raw.rng.choice([747, 768], count),
    }
