from collections.abc import Sequence

from mlebench.kit import Output, Raw, RawFile, Table, accepts_paths, split_rows

TRUTH = "ground_truth.csv"


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    # Quirk of v1: supplemental/span_log.nmea, the track of the reference receiver, is public for test trips too.
    prepare_drives(raw, public, private, secret=[f"**/{TRUTH}"])


def prepare_drives(raw: Raw, public: Output, private: Output, *, secret: Sequence[str]) -> None:
    """Write all files but those of test drives that match a pattern in `secret`."""
    drives = sorted({file.path.parts[1] for file in raw.files("train/*/**")})
    _, test_dates = split_rows(sorted(set(map(_date_of, drives))), test_size=0.1, seed=0)
    truths: list[RawFile] = []
    for drive in drives:
        if _date_of(drive) in test_dates:
            public.place_tree(raw, f"train/{drive}", f"test/{drive}", exclude=secret)
            truths += raw.files(f"train/{drive}/**/{TRUTH}")
        else:
            public.place_tree(raw, f"train/{drive}", f"train/{drive}")
    public.place_tree(raw, "metadata", "metadata")

    truths.sort(key=lambda file: file.path.parts)  # folder by folder, as paths are sorted
    test = Table.concat([_positions(raw, file) for file in truths])
    guess = {"LatitudeDegrees": 37.904611315634504, "LongitudeDegrees": -86.48107806249548}
    public.write("sample_submission.csv", test.assign(guess))
    private.write("test.csv", test)


def _date_of(drive: str) -> str:
    """The date that the name of a drive begins with, such as 2020-05-15."""
    return "-".join(part.zfill(2) for part in drive.split("-")[:3])


def _positions(raw: Raw, truth: RawFile) -> Table:
    """The positions of one phone on one drive.

    The published files were made with pandas' fast float parser, ours with exact floats. Up to 15 digits both give the
    same number: the digits are a whole number below 2**53, divided by a power of ten that a float can hold. Coordinates
    have 10 digits here; with 17, every third would differ in its last bit.
    """
    drive, phone = truth.path.parts[-3:-1]
    table = raw.table(truth.name).assign(tripId=f"{drive}-{phone}")
    return table.select("tripId", "UnixTimeMillis", "LatitudeDegrees", "LongitudeDegrees")
