from functools import reduce
from operator import xor

import numpy as np

from mlebench.kit.twins import TwinFolder, csv_bytes, json_bytes, rounded

PHONES = ("GooglePixel4", "GooglePixel4XL", "SamsungGalaxyS20Ultra", "XiaomiMi8")
PLACES = {"US-MTV": (37.42, -122.08), "US-SJC": (37.33, -121.89), "US-LAX": (34.05, -118.24)}
FIRST_DAY = np.datetime64("2020-05-15")
SATELLITES = 2  # heard each second; the original has dozens
EARTH = 6_378_137.0, 6.69437999013e-3  # the equatorial radius in metres, and the square of the ellipse's eccentricity
GNSS_COLUMNS = (
    "MessageType", "utcTimeMillis", "TimeNanos", "LeapSecond", "FullBiasNanos", "BiasNanos", "BiasUncertaintyNanos",
    "DriftNanosPerSecond", "DriftUncertaintyNanosPerSecond", "HardwareClockDiscontinuityCount", "Svid",
    "TimeOffsetNanos", "State", "ReceivedSvTimeNanos", "ReceivedSvTimeUncertaintyNanos", "Cn0DbHz",
    "PseudorangeRateMetersPerSecond", "PseudorangeRateUncertaintyMetersPerSecond", "AccumulatedDeltaRangeState",
    "AccumulatedDeltaRangeMeters", "AccumulatedDeltaRangeUncertaintyMeters", "CarrierFrequencyHz",
    "MultipathIndicator", "ConstellationType", "CodeType", "ChipsetElapsedRealtimeNanos",
    "ArrivalTimeNanosSinceGpsEpoch", "RawPseudorangeMeters", "RawPseudorangeUncertaintyMeters", "SignalType",
    "ReceivedSvTimeNanosSinceGpsEpoch", "SvPositionXEcefMeters", "SvPositionYEcefMeters", "SvPositionZEcefMeters",
    "SvElevationDegrees", "SvAzimuthDegrees", "SvVelocityXEcefMetersPerSecond", "SvVelocityYEcefMetersPerSecond",
    "SvVelocityZEcefMetersPerSecond", "SvClockBiasMeters", "SvClockDriftMetersPerSecond", "IsrbMeters",
    "IonosphericDelayMeters", "TroposphericDelayMeters", "WlsPositionXEcefMeters", "WlsPositionYEcefMeters",
    "WlsPositionZEcefMeters",
)  # fmt: skip

Columns = dict[str, np.ndarray]


def twin(raw: TwinFolder) -> None:
    """Signal: the position that the phone itself works out (WlsPosition…) is the true one plus some metres of noise."""
    dates = min(raw.count(10, least=8), 300)
    seconds = max(15, raw.count(150) // dates)  # of each drive; large twins have longer ones
    later: list[Columns] = []
    for number in range(dates + 2):  # the last two are the original's test set
        date = FIRST_DAY + 7 * number
        for turn in range(1, raw.rng.randint(2, 4)):
            place = raw.rng.choice(list(PLACES))
            phones = raw.rng.permutation(PHONES)[: raw.rng.randint(1, 3)]
            for phone in phones:
                folder = f"{date}-{place}-{turn}/{phone}"
                if number < dates:
                    _write_trace(raw, f"train/{folder}", date, place, seconds)
                else:
                    truth = _write_trace(raw, f"test/{folder}", date, place, seconds, with_truth=False)
                    later.append({"tripId": np.full(seconds, folder, dtype=object), **truth})
    sample = {name: np.concatenate([trip[name] for trip in later]) for name in ("tripId", "UnixTimeMillis")}
    constant = {"LatitudeDegrees": 37.904611315634504, "LongitudeDegrees": -86.48107806249548}
    rows = len(sample["tripId"])
    raw.write_csv("sample_submission.csv", sample | {name: np.full(rows, value) for name, value in constant.items()})

    raw.write_csv(
        "metadata/constellation_type_mapping.csv",
        {"constellationType": [0, 1, 3], "constellationName": ["UNKNOWN", "GPS", "GLONASS"]},
    )
    raw.write("metadata/raw_state_bit_map.json", json_bytes({"0": "Code Lock", "14": "TOW Known"}))
    raw.write("metadata/accumulated_delta_range_state_bit_map.json", json_bytes({"0": "Valid", "2": "Cycle Slip"}))


def _write_trace(
    raw: TwinFolder, folder: str, date: np.datetime64, place: str, seconds: int, *, with_truth: bool = True
) -> Columns:
    """Everything one phone recorded on one drive; returns where it was and when."""
    rng = raw.rng
    start = date.astype("datetime64[ms]").astype(np.int64) + rng.randint(60_000_000, 80_000_000)
    time = start + 1000 * np.arange(seconds)
    latitude, longitude = (
        np.round(middle + rng.uniform(-0.05, 0.05) + np.cumsum(rounded(rng.uniform(-1, 1.5, seconds))) * 1e-4, 7)
        for middle in PLACES[place]
    )
    truth = {"LatitudeDegrees": latitude, "LongitudeDegrees": longitude}
    if with_truth:
        raw.write(f"{folder}/ground_truth.csv", _ground_truth(rng, time, truth))
    raw.write(f"{folder}/device_gnss.csv", _gnss(rng, time, latitude, longitude))
    raw.write(f"{folder}/device_imu.csv", _imu(rng, time))
    raw.write(f"{folder}/supplemental/gnss_log.txt", b"# Version: v3.0.5.6 Platform: 11\r\n#\r\n")
    raw.write(f"{folder}/supplemental/rinex.o", b"     3.03           OBSERVATION DATA    M                   \n")
    raw.write(f"{folder}/supplemental/span_log.nmea", _nmea(time, latitude, longitude))
    return truth | {"UnixTimeMillis": time}


def _ground_truth(rng: np.random.RandomState, time: np.ndarray, truth: Columns) -> bytes:
    count = len(time)
    altitude = rng.randint(-5000, 60_000, count) / 1000 / 3 if rng.rand() < 0.8 else [None] * count
    speed = rounded(rng.uniform(0, 20, count))
    speed[::7] = 0.000004
    columns = {"MessageType": ["Fix"] * count, "Provider": ["GT"] * count, **truth, "AltitudeMeters": altitude}
    columns |= {"SpeedMps": speed, "AccuracyMeters": [0.1] * count}
    return csv_bytes(columns | {"BearingDegrees": rounded(rng.uniform(0, 360, count), 5), "UnixTimeMillis": time})


def _nmea(time: np.ndarray, latitude: np.ndarray, longitude: np.ndarray) -> bytes:
    """The track of the reference receiver, in degrees and minutes: 37.5 degrees are 3730.0000000."""
    sentences = []
    for moment, *position in zip(time.tolist(), latitude.tolist(), longitude.tolist(), strict=True):
        hundredths = moment // 10 % 8_640_000
        clock = f"{hundredths // 360_000:02}{hundredths // 6_000 % 60:02}{hundredths // 100 % 60:02}"
        north, west = (divmod(round(abs(degrees) * 10**7), 10**7) for degrees in position)
        at = [f"{degrees}{rest * 60 // 10**7:02}.{rest * 60 % 10**7:07}" for degrees, rest in (north, west)]
        body = f"GPGGA,{clock}.{hundredths % 100:02},{at[0]},N,{at[1]},W,1,12,0.8,30.0,M,-32.0,M,,"
        sentences.append(f"${body}*{reduce(xor, body.encode()):02X}\r\n")
    return "".join(sentences).encode()


def _gnss(rng: np.random.RandomState, time: np.ndarray, latitude: np.ndarray, longitude: np.ndarray) -> bytes:
    """One row for each satellite and second."""
    noise = rounded(rng.uniform(-4, 4, (3, len(time))))
    position = [np.repeat(rounded(axis, 4), SATELLITES) for axis in _ecef(latitude, longitude) + noise]
    count = len(time) * SATELLITES
    columns = {name: np.char.mod("%.3f", rng.uniform(0, 9, count)) for name in GNSS_COLUMNS}
    columns |= {name: np.full(count, "", dtype=object) for name in ("LeapSecond", "IsrbMeters", "SvAzimuthDegrees")}
    columns |= {"MessageType": np.full(count, "Raw"), "utcTimeMillis": np.repeat(time, SATELLITES)}
    columns |= {
        "FullBiasNanos": np.full(count, -1303768821813692247),
        "Svid": np.tile(np.arange(SATELLITES) + 2, len(time)),
    }
    columns |= {"ArrivalTimeNanosSinceGpsEpoch": np.full(count, "1.3037709439996923e+18")}
    columns |= {"SignalType": np.full(count, "GPS_L1"), "CodeType": np.full(count, "C")}
    return csv_bytes(columns | dict(zip(GNSS_COLUMNS[-3:], position, strict=True)))


def _imu(rng: np.random.RandomState, time: np.ndarray) -> bytes:
    columns = {"MessageType": rng.choice(["UncalAccel", "UncalGyro", "UncalMag"], len(time)), "utcTimeMillis": time}
    columns |= {"elapsedRealtimeNanos": time * 1_000_000 - 1_619_000_000_000_000_000}
    columns |= {f"Measurement{axis}": rounded(rng.uniform(-10, 10, len(time))) for axis in "XYZ"}
    return csv_bytes(columns | {f"Bias{axis}": np.zeros(len(time)) for axis in "XYZ"})


def _ecef(latitude: np.ndarray, longitude: np.ndarray) -> np.ndarray:
    """Degrees at sea level, as metres from the centre of the earth."""
    north, east, (radius, squared) = np.radians(latitude), np.radians(longitude), EARTH
    across = radius / np.sqrt(1 - squared * np.sin(north) ** 2)
    x, y = across * np.cos(north) * np.cos(east), across * np.cos(north) * np.sin(east)
    return np.stack([x, y, across * (1 - squared) * np.sin(north)])
