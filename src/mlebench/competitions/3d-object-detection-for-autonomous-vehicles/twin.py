from dataclasses import dataclass
from typing import Any

import numpy as np

from mlebench.kit.twins import TwinFolder, image_bytes, json_bytes, rounded

Record = dict[str, Any]

# Width, length and height of each class, in metres, and its share of objects in percent.
CLASSES = {
    "car": (1.9, 4.8, 1.7, 60),
    "pedestrian": (0.8, 0.8, 1.8, 8),
    "bicycle": (0.6, 1.8, 1.4, 8),
    "bus": (2.9, 12.3, 3.4, 6),
    "truck": (2.8, 10.2, 3.4, 6),
    "other_vehicle": (2.8, 8.2, 3.2, 6),
    "motorcycle": (1.0, 2.4, 1.6, 2),
    "emergency_vehicle": (2.4, 6.5, 2.4, 2),
    "animal": (0.4, 0.7, 0.5, 2),
}
CAMERAS = ("BACK", "FRONT_ZOOMED", "FRONT", "FRONT_LEFT", "FRONT_RIGHT", "BACK_RIGHT", "BACK_LEFT")
LIDARS = ("TOP", "FRONT_RIGHT", "FRONT_LEFT")
VEHICLES = {"a101": 3, "a004": 1, "a011": 1}  # how many lidars each has
SAMPLES = 3  # in a drive; the original has 126
LIDAR_HEIGHT = 2.0
PLACE = np.array([1900.0, 1100.0, -22.0])
MAP = "map_raster_palo_alto.png"
EMPTY = ("log", "scene", "sample", "sample_data", "calibrated_sensor", "ego_pose", "instance", "sample_annotation")


def twin(raw: TwinFolder) -> None:
    """Signal: lidar points are on objects, whose extent reveals their class and box, or on flat ground."""
    picture = image_bytes(raw.rng.randint(0, 255, (24, 24)), "PNG")
    for side, count in (("train", raw.count(11, least=8)), ("test", raw.count(2))):
        drives = _Drives(raw, side)
        for number in range(count):
            drives.drive(number)
        # One sweep is listed twice.
        drives.tables["sample_data"].append({**drives.tables["sample_data"][-1], "token": drives.token()})
        if side == "train":
            columns = {"Id": list(drives.boxes), "PredictionString": list(map(" ".join, drives.boxes.values()))}
            raw.write_csv("train.csv", columns)
        else:
            columns = {"Id": list(drives.boxes), "PredictionString": [None] * len(drives.boxes)}
            raw.write_csv("sample_submission.csv", columns)
            del drives.tables["instance"], drives.tables["sample_annotation"]
        for name, records in drives.tables.items():
            raw.write(f"{side}_data/{name}.json", json_bytes(records))
        raw.write(f"{side}_maps/{MAP}", picture)


@dataclass
class _Thing:
    """An object in traffic at one moment."""

    name: str
    instance: Record
    centre: np.ndarray  # as the lidar sees it
    size: np.ndarray  # width, length, height
    yaw: float
    step: np.ndarray  # how far it moves until the next sample

    def points(self, rng: np.random.RandomState) -> np.ndarray:
        width, length, height = self.size
        x, y, z = (rng.uniform(-0.5, 0.5, (12, 3)) * [length, width, height]).T
        cosine, sine = np.cos(self.yaw), np.sin(self.yaw)
        return np.column_stack([x * cosine - y * sine, x * sine + y * cosine, z]) + self.centre


class _Drives:
    """Drives, each one log and one scene: the tables, and the images and sweeps as files."""

    def __init__(self, raw: TwinFolder, side: str):
        self.boxes: dict[str, list[str]] = {}  # of each sample
        self._raw, self._rng, self._side = raw, raw.rng, side
        self.tables: dict[str, list[Record]] = {name: [] for name in EMPTY}
        self._map = {"log_tokens": [], "category": "semantic_prior", "filename": f"maps/{MAP}", "token": self.token()}
        self.tables["map"] = [self._map]
        self.tables["category"] = self._named(list(CLASSES))
        self.tables["attribute"] = self._named(["object_action_parked", "object_action_walking", "is_stationary"])
        self.tables["visibility"] = [{"token": str(n), "level": f"v{20 * n}", "description": ""} for n in range(1, 5)]
        channels = [("camera", f"CAM_{name}") for name in CAMERAS] + [("lidar", f"LIDAR_{name}") for name in LIDARS]
        self.tables["sensor"] = [
            {"modality": modality, "channel": name, "token": self.token()} for modality, name in channels
        ]
        self._calibrated: dict[tuple[str, str], str] = {}

    def token(self) -> str:
        return self._rng.bytes(32).hex()

    def drive(self, number: int) -> None:
        vehicle, log = list(VEHICLES)[number % len(VEHICLES)], self.token()
        samples, start = [self.token() for _ in range(SAMPLES)], 1_550_000_000_000_000 + 86_400_000_000 * number
        facts = {"token": log, "date_captured": "2019-02-12", "location": "Palo Alto", "logfile": ""}
        self.tables["log"].append({**facts, "vehicle": vehicle, "map_token": self._map["token"]})
        self._map["log_tokens"].append(log)
        ends = {"first_sample_token": samples[0], "last_sample_token": samples[-1], "nbr_samples": SAMPLES}
        scene = {"log_token": log, "token": log, "name": f"host-{vehicle}-lidar0-{start}", "description": ""}
        self.tables["scene"].append({**scene, **ends})
        origin, things = rounded(PLACE + self._rng.uniform(-1, 1, 3) * [400, 400, 4]), self._things()
        for sample, before, after in zip(samples, ["", *samples], [*samples[1:], ""], strict=False):
            time = start + self._rng.randint(0, 1_000_000) / 10  # microseconds, with a fraction
            record = {"token": sample, "timestamp": time, "scene_token": log, "prev": before, "next": after}
            self.tables["sample"].append(record)
            self._take(sample, vehicle, time, origin, things)
            self._annotate(sample, origin, things)
            start += 200_000
            for thing in things:
                thing.centre = thing.centre + thing.step

    def _named(self, names: list[str]) -> list[Record]:
        return [{"name": name, "description": "", "token": self.token()} for name in names]

    def _things(self) -> list[_Thing]:
        """Some things, far enough apart."""
        things = []
        for corner in self._rng.permutation(9)[: self._rng.randint(3, 7)].tolist():
            kind = self._rng.choice(len(CLASSES), p=[facts[3] / 100 for facts in CLASSES.values()])
            size = rounded(np.array(list(CLASSES.values())[kind][:3]) * self._rng.uniform(0.9, 1.1, 3), 3)
            centre = np.array([14.0 * (corner % 3 - 1), 14.0 * (corner // 3 - 1), size[2] / 2 - LIDAR_HEIGHT])
            instance = {"category_token": self.tables["category"][kind]["token"], "token": self.token()}
            self.tables["instance"].append(instance)
            yaw, step = round(self._rng.uniform(-np.pi, np.pi), 6), self._rng.uniform(-1, 1, 3) * [1, 1, 0]
            things.append(_Thing(list(CLASSES)[kind], instance, centre, size, yaw, step))
        return things

    def _take(self, sample: str, vehicle: str, time: float, origin: np.ndarray, things: list[_Thing]) -> None:
        """Take the images and sweeps of a moment."""
        taken = [("images", f"cam{number}", "jpeg", f"CAM_{name}") for number, name in enumerate(CAMERAS)]
        lidars = LIDARS[: VEHICLES[vehicle]]
        taken += [("lidar", f"lidar{number}", "bin", f"LIDAR_{name}") for number, name in enumerate(lidars)]
        for folder, device, format, channel in taken:
            file = f"host-{vehicle}_{device}_{int(time * 1000)}.{format}"
            self._raw.write(
                f"{self._side}_{folder}/{file}", self._picture() if format == "jpeg" else self._sweep(things)
            )
            pose, place = self.token(), (origin - [0, 0, LIDAR_HEIGHT]).tolist()
            self.tables["ego_pose"].append(
                {"rotation": [1, 0, 0, 0], "translation": place, "token": pose, "timestamp": time}
            )
            datum = {"token": self.token(), "sample_token": sample, "ego_pose_token": pose, "timestamp": time}
            file_facts = {"filename": f"{folder}/{file}", "fileformat": format, "is_key_frame": True}
            calibrated = {"calibrated_sensor_token": self._calibrated_sensor(vehicle, channel)}
            self.tables["sample_data"].append({**datum, **calibrated, **file_facts, "width": 12, "height": 8})

    def _calibrated_sensor(self, vehicle: str, channel: str) -> str:
        if (vehicle, channel) not in self._calibrated:
            self._calibrated[vehicle, channel] = token = self.token()
            (sensor,) = (sensor["token"] for sensor in self.tables["sensor"] if sensor["channel"] == channel)
            place = {"translation": [0, 1e-05, LIDAR_HEIGHT], "rotation": [1, 0, 0, 0], "camera_intrinsic": []}
            self.tables["calibrated_sensor"].append({"sensor_token": sensor, **place, "token": token})
        return self._calibrated[vehicle, channel]

    def _annotate(self, sample: str, origin: np.ndarray, things: list[_Thing]) -> None:
        self.boxes[sample] = []
        for thing in things:
            centre, size, token = rounded(origin + thing.centre).tolist(), thing.size.tolist(), self.token()
            self.boxes[sample].append(" ".join(map(str, [*centre, *size, thing.yaw, thing.name])))
            real, imaginary = rounded(np.array([np.cos(thing.yaw / 2), np.sin(thing.yaw / 2)])).tolist()
            box = {"translation": centre, "size": size, "rotation": [real, 0, 0, imaginary], "num_lidar_pts": 12}
            links = {"instance_token": thing.instance["token"], "visibility_token": "4", "prev": "", "next": ""}
            states = {"attribute_tokens": [self.tables["attribute"][0]["token"]]}
            self.tables["sample_annotation"].append({"token": token, "sample_token": sample, **box, **links, **states})
            thing.instance.setdefault("first_annotation_token", token)
            thing.instance.update(last_annotation_token=token, nbr_annotations=SAMPLES)

    def _picture(self) -> bytes:
        return image_bytes(self._rng.randint(0, 255, (8, 12, 3)), "JPEG")

    def _sweep(self, things: list[_Thing]) -> bytes:
        """Points as five 32-bit floats each: x, y and z as the lidar sees them, intensity, and which laser it was."""
        ground = np.column_stack([self._rng.uniform(-20, 20, (24, 2)), np.full(24, -LIDAR_HEIGHT)])
        points = np.concatenate([ground, *(thing.points(self._rng) for thing in things)])
        values = np.pad(rounded(points, 3), ((0, 0), (0, 2)))
        values[:, 3] = 100
        return values.astype("<f4").tobytes()
