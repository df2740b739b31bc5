import numpy as np

from mlebench.kit import Output, Raw, accepts_paths, split_groups


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    prepare_breaths("%.10g", raw, public, private)  # Quirk of v1: fewer digits than were measured


def prepare_breaths(digits: str | None, raw: Raw, public: Output, private: Output) -> None:
    """Prepare the breaths; `digits` is how numbers are printed, None for all of them."""
    breaths = raw.table("train.csv")
    sides = split_groups(breaths, "breath_id", test_size=0.1, seed=0, order="blocks")
    train, test = (side.assign(id=np.arange(1, len(side) + 1)) for side in sides)

    public.write("train.csv", train, float_format=digits)
    public.write("test.csv", test.drop("pressure"), float_format=digits)
    public.write("sample_submission.csv", test.select("id").assign(pressure=0))
    private.write("test.csv", test, float_format=digits)
