from mlebench.kit import Output, Raw, Table, accepts_paths, renumber, split_rows

TARGETS = {"formation_energy_ev_natom": 0.1779, "bandgap_energy_ev": 1.8892}  # and what the sample predicts for all


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    write_parts(*split_rows(materials_of(raw), test_size=0.1, seed=0), raw, public, private)


def materials_of(raw: Raw) -> Table:
    return raw.archive("train.csv.zip").table("train.csv")


def write_parts(train: Table, test: Table, raw: Raw, public: Output, private: Output) -> None:
    """Write both parts, each numbered from 1."""
    # One folder of the real data holds a second file; the last one, sorted by name, is taken.
    geometry = {int(file.path.parent.name): file for file in raw.archive("train.zip").files("train/*/*.xyz")}
    for name, part in (("train", train), ("test", test)):
        numbers = zip(part["id"], renumber(part["id"], start=1), strict=True)
        public.place_each((geometry[old], f"{name}/{new}/geometry.xyz") for old, new in numbers)

    train, test = (part.assign(id=renumber(part["id"], start=1)) for part in (train, test))
    public.write("train.csv", train)
    public.write("test.csv", test.drop(*TARGETS))
    public.write("sample_submission.csv", test.select("id").assign(TARGETS))
    private.write("test.csv", test)
