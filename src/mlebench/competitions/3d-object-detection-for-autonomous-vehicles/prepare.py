from collections.abc import Collection
from pathlib import PurePosixPath
from typing import Any

from mlebench.kit import Output, Raw, Table, accepts_paths, split_rows

Record = dict[str, Any]
Tokens = tuple[Collection[str], Collection[str]]  # of train and of test

FOR_ALL = ("attribute", "category", "sensor", "visibility")
FOLDERS = {"jpeg": "images", "bin": "lidar"}
MAP = "map_raster_palo_alto.png"


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    logs = split_logs(raw)
    # Quirk of v1: train's map lists the logs of test, as test's does.
    prepare_drives(logs, (logs[1], logs[1]), raw, public, private)


def split_logs(raw: Raw) -> Tokens:
    return split_rows([log["token"] for log in _records(raw, "log")], test_size=0.2, seed=0)


def prepare_drives(logs: Tokens, on_maps: Tokens, raw: Raw, public: Output, private: Output) -> None:
    """Prepare the drives of these logs; the map of each side lists those `on_maps`."""
    samples = _split_drives(raw, public, logs, on_maps)
    _split_sensor_data(raw, public, samples)
    _split_annotations(raw, public, samples[0])
    for side in ("train", "test"):
        public.place(raw.file(f"train_maps/{MAP}"), f"{side}_maps/{MAP}")
        for name in FOR_ALL:
            public.place(raw.file(f"train_data/{name}.json"), f"{side}_data/{name}.json")

    boxes = raw.table("train.csv")
    train, test = (boxes.where_in("Id", list(tokens)) for tokens in samples)
    public.write("train.csv", train)
    public.write("sample_submission.csv", test.assign(PredictionString=""))
    private.write("test.csv", _with_confidence(test))


def _split_drives(raw: Raw, public: Output, logs: Tokens, on_maps: Tokens) -> Tokens:
    """Logs, scenes and samples; the tokens of samples on each side."""
    _write(public, "log", *_divided(_records(raw, "log"), "token", logs))
    _write(public, "scene", *_divided(_records(raw, "scene"), "log_token", logs))
    maps = _records(raw, "map")  # the one map
    _write(public, "map", *([record | {"log_tokens": tokens} for record in maps] for tokens in on_maps))
    train, test = _divided(_records(raw, "sample"), "scene_token", logs)  # a scene has the token of its log
    _write(public, "sample", train, test)
    return {sample["token"] for sample in train}, {sample["token"] for sample in test}


def _split_sensor_data(raw: Raw, public: Output, samples: Tokens) -> None:
    """Images and lidar sweeps, and where the car and its sensors were when they were taken."""
    sides = _divided(_records(raw, "sample_data"), "sample_token", samples)
    _write(public, "sample_data", *sides)
    sensors = {sensor["token"]: sensor for sensor in _records(raw, "calibrated_sensor")}
    used = [dict.fromkeys(datum["calibrated_sensor_token"] for datum in data) for data in sides]  # each once
    _write(public, "calibrated_sensor", *([sensors[token] for token in tokens] for tokens in used))
    poses = {pose["token"]: pose for pose in _records(raw, "ego_pose")}
    _write(public, "ego_pose", *([poses[datum["ego_pose_token"]] for datum in data] for data in sides))
    for side, data in zip(("train", "test"), sides, strict=True):
        files = {PurePosixPath(datum["filename"]).name: FOLDERS[datum["fileformat"]] for datum in data}
        public.place_each((raw.file(f"train_{kind}/{name}"), f"{side}_{kind}/{name}") for name, kind in files.items())


def _split_annotations(raw: Raw, public: Output, train: Collection[str]) -> None:
    """Boxes and their objects, for training only."""
    boxes = [box for box in _records(raw, "sample_annotation") if box["sample_token"] in train]
    public.write_json("train_data/sample_annotation.json", boxes)
    seen = {box["instance_token"] for box in boxes}
    public.write_json("train_data/instance.json", [one for one in _records(raw, "instance") if one["token"] in seen])


def _with_confidence(boxes: Table) -> Table:
    """In a submission, a confidence precedes the eight values of each box."""
    cells = []
    for cell in boxes["PredictionString"]:
        words = cell.split(" ")
        cells.append(" ".join(" ".join(["1.0", *words[start : start + 8]]) for start in range(0, len(words), 8)))
    return boxes.assign(PredictionString=cells)


def _records(raw: Raw, name: str) -> list[Record]:
    return raw.json(f"train_data/{name}.json")


def _divided(records: list[Record], field: str, tokens: Tokens) -> tuple[list[Record], list[Record]]:
    train, test = map(set, tokens)
    return [one for one in records if one[field] in train], [one for one in records if one[field] in test]


def _write(public: Output, name: str, train: list[Record], test: list[Record]) -> None:
    public.write_json(f"train_data/{name}.json", train)
    public.write_json(f"test_data/{name}.json", test)
