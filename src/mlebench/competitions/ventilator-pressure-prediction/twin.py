import numpy as np

from mlebench.kit.twins import TwinFolder, rounded

STEPS = 80  # of each breath
LOWEST, LEVEL = -1.895744294564641, 0.07030214545121005  # the sensor has 950 pressure levels, this far apart


def twin(raw: TwinFolder) -> None:
    """Signal: pressure rises with the air that has flowed in, the more so the stiffer the lung (small C)."""
    count, later = raw.count(30, least=20), raw.count(10)
    numbers = raw.rng.permutation(np.arange(1, count + later + 1))  # breaths of train and test are numbered together
    raw.write_csv("train.csv", _breaths(raw.rng, np.sort(numbers[:count])))

    test = _breaths(raw.rng, np.sort(numbers[count:]))
    pressure = test.pop("pressure")
    raw.write_csv("test.csv", test)
    raw.write_csv("sample_submission.csv", {"id": test["id"], "pressure": [0] * len(pressure)})


def _breaths(rng: np.random.RandomState, numbers: np.ndarray) -> dict[str, np.ndarray]:
    """Sums, products and quotients are rounded the same on every machine, so these numbers keep all their digits."""
    shape = len(numbers), STEPS
    resistance, compliance = (rng.choice(values, len(numbers)) for values in ([5, 20, 50], [10, 20, 50]))
    length = rounded(rng.uniform(0.032, 0.036, len(numbers)))[:, None] / 1.0001
    time = length * np.arange(STEPS)
    breathing_out = time > 1

    flow = rounded(rng.uniform(0, 25, len(numbers)))[:, None] / 3 * (1 + rounded(rng.rand(*shape)) / 7)
    opening = rng.rand(*shape)
    flow[opening < 0.10] = 0.0
    flow[opening > 0.97] = 100.0
    flow[(opening > 0.96) & (opening <= 0.97)] = 0.00004
    flow[breathing_out] /= 16

    inhaled = np.where(breathing_out, 0, flow).cumsum(axis=1) * length
    pressure = 5 + 8 * inhaled / compliance[:, None] + flow * resistance[:, None] / 500
    pressure = np.where(breathing_out, 6.5, pressure) + rounded(rng.uniform(-0.2, 0.2, shape))
    levels = np.round((pressure - LOWEST) / LEVEL).clip(0, 949)
    return {
        "id": np.arange(1, len(numbers) * STEPS + 1),
        "breath_id": np.repeat(numbers, STEPS),
        "R": np.repeat(resistance, STEPS),
        "C": np.repeat(compliance, STEPS),
        "time_step": time.ravel(),
        "u_in": flow.ravel(),
        "u_out": breathing_out.ravel().astype(int),
        "pressure": (LOWEST + LEVEL * levels).ravel(),
    }
