from typing import Any

import numpy as np

from mlebench.kit.twins import TwinFolder, image_bytes, mp4_bytes, rounded

PLAYERS = 5  # the original has 22 in a play
STEPS = np.arange(-2, 5)  # tenths of a second; tracking starts before the snap, contact labels with it
FIRST_SNAP = np.datetime64("2020-09-11T03:01:48.134", "ms")
POSITIONS = ("CB", "DE", "OLB", "QB", "T", "WR")
VIEWS = ("All29", "Endzone", "Sideline")


def twin(raw: TwinFolder) -> None:
    """Signal: players less than a yard apart are mostly in contact; one who hardly moves is mostly on the ground."""
    plays = _Plays(raw.rng, raw.count(20, least=10))
    tables = {"labels": plays.labels(), **plays.tables()}
    mock = plays.names[:2]  # the original's test plays are copies of training plays too
    for name, columns in tables.items():
        raw.write_csv(f"train_{name}.csv", columns)
        shown = np.isin(columns["game_play"], mock)
        columns = {column: np.asarray(values, dtype=object)[shown] for column, values in columns.items()}
        if name == "labels":
            raw.write_csv(
                "sample_submission.csv", {"contact_id": columns["contact_id"], "contact": columns["contact"] * 0}
            )
        else:
            raw.write_csv(f"test_{name}.csv", columns)
    for play in plays.names:
        for view in VIEWS:
            video = mp4_bytes([image_bytes(raw.rng.randint(0, 256, (8, 8)), "JPEG")], width=8, height=8)
            for folder in ("train", "test") if play in mock else ("train",):
                raw.write(f"{folder}/{play}_{view}.mp4", video)


class _Plays:
    """Some plays: where each player is at each step, in arrays of plays × steps × players."""

    def __init__(self, rng: np.random.RandomState, count: int):
        self._rng = rng
        self._shape = count, len(STEPS), PLAYERS
        self._games = 58168 + np.arange(count)
        self._numbers = rng.randint(36, 4500, count)
        self.names = [f"{game}_{number:06d}" for game, number in zip(self._games, self._numbers, strict=True)]
        self._snaps = FIRST_SNAP + np.arange(count) * np.timedelta64(86_400_250, "ms")
        self._players = np.sort(rng.rand(count, 60).argsort(axis=1)[:, :PLAYERS], axis=1) * 97 + 37_211
        self._speed = rounded(np.where(rng.rand(*self._shape) < 0.15, 0.1, 1) * rng.uniform(1, 6, self._shape), 2)
        start = rng.uniform(0, 4, (2, count, 1, PLAYERS)) + np.array([60, 26])[:, None, None, None]
        self._x, self._y = rounded(start + rng.uniform(-0.3, 0.3, (2, *self._shape)).cumsum(axis=2), 2)

    def labels(self) -> dict[str, Any]:
        one, two = np.triu_indices(PLAYERS, 1)
        distance = np.hypot(self._x[..., one] - self._x[..., two], self._y[..., one] - self._y[..., two])
        touching = np.concatenate([distance < 1, self._speed < 0.6], axis=2)[:, STEPS >= 0]
        touching ^= self._rng.rand(*touching.shape) < 0.04
        play, step, pair = (places.ravel() for places in np.indices(touching.shape))
        first = self._players[play, np.concatenate([one, np.arange(PLAYERS)])[pair]]
        with_ground = pair >= len(one)
        second = np.where(with_ground, "G", self._players[play, np.append(two, [0] * PLAYERS)[pair]].astype(str))
        name = np.array(self.names)[play]
        ids = [f"{a}_{b}_{c}_{d}" for a, b, c, d in zip(name, step, first, second, strict=True)]
        return {
            "contact_id": ids,
            "game_play": name,
            "datetime": self._times(play, step),
            "step": step,
            "nfl_player_id_1": first,
            "nfl_player_id_2": second,
            "contact": touching.ravel().astype(int),
        }

    def tables(self) -> dict[str, dict[str, Any]]:
        return {
            "player_tracking": self._tracking(),
            "baseline_helmets": self._helmets(),
            "video_metadata": self._metadata(),
        }

    def _tracking(self) -> dict[str, Any]:
        play, step, player = (places.ravel() for places in np.indices(self._shape))
        play = self._rng.permutation(len(self.names))[play]  # plays are in a different order from the labels
        count = len(play)
        angles = np.round(self._rng.uniform(0, 360, (2, count)), 2).astype(object)
        angles[:, self._rng.rand(count) < 0.01] = None
        acceleration = self._rng.uniform(0, 4, count)
        return {
            **self._keys(play),
            "nfl_player_id": self._players[play, player],
            "datetime": self._times(play, STEPS[step]),
            "step": STEPS[step],
            "team": np.where(player % 2, "home", "away"),
            "position": np.array(POSITIONS)[(play + player) % len(POSITIONS)],
            "jersey_number": self._players[play, player] % 99 + 1,
            "x_position": self._x[play, step, player],
            "y_position": self._y[play, step, player],
            "speed": self._speed[play, step, player],
            "distance": rounded(self._speed[play, step, player] / 10, 2),
            "direction": angles[0],
            "orientation": angles[1],
            "acceleration": rounded(acceleration, 2),
            "sa": rounded(acceleration * self._rng.uniform(-1, 1, count), 2),
        }

    def _helmets(self) -> dict[str, Any]:
        play, view, player = (places.ravel() for places in np.indices((len(self.names), 2, PLAYERS)))
        keys, views = self._keys(play), np.array(VIEWS[1:])[view]
        labels = np.char.add(np.where(player % 2, "H", "V"), (self._players[play, player] % 99 + 1).astype(str))
        boxes = {"left": 1200, "width": 40, "top": 690, "height": 40}
        return {
            **keys,
            "view": views,
            "video": [f"{name}_{view}.mp4" for name, view in zip(keys["game_play"], views, strict=True)],
            "frame": self._rng.randint(280, 320, len(play)),
            "nfl_player_id": self._players[play, player],
            "player_label": labels,
            **{side: self._rng.randint(8, most, len(play)) for side, most in boxes.items()},
        }

    def _metadata(self) -> dict[str, Any]:
        play = np.repeat(np.arange(len(self.names)), 2)
        second = np.timedelta64(1000, "ms")
        return {
            **self._keys(play),
            "view": np.tile(VIEWS[1:], len(self.names)),
            "start_time": _printed((self._snaps - 5 * second)[play]),
            "end_time": _printed((self._snaps + 7 * second)[play]),
            "snap_time": _printed(self._snaps[play]),
        }

    def _keys(self, play: np.ndarray) -> dict[str, Any]:
        return {"game_play": np.array(self.names)[play], "game_key": self._games[play], "play_id": self._numbers[play]}

    def _times(self, play: np.ndarray, step: np.ndarray) -> np.ndarray:
        tenth = np.timedelta64(100, "ms")
        begin = self._snaps - (self._snaps - FIRST_SNAP.astype("datetime64[D]")) % tenth  # trackers record whole tenths
        return _printed(begin[play] + step * tenth)


def _printed(times: np.ndarray) -> np.ndarray:
    return np.char.add(np.datetime_as_string(times, unit="ms"), "Z")
