from mlebench.kit import Output, Raw, accepts_paths, split_groups, unique

# Quirk of v1: only the molecules of the train split are public in these, and in the structures too.
ABOUT_MOLECULES = (
    "structures.csv",
    "dipole_moments.csv",
    "magnetic_shielding_tensors.csv",
    "mulliken_charges.csv",
    "potential_energy.csv",
    "scalar_coupling_contributions.csv",
)


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    couplings = raw.table("train.csv")
    train, test = split_groups(couplings, "molecule_name", test_size=0.1, seed=0, order="blocks")

    public.write("train.csv", train)
    public.write("test.csv", test.drop("scalar_coupling_constant"))
    public.write("sample_submission.csv", test.select("id").assign(scalar_coupling_constant=0))

    molecules = unique(train["molecule_name"])
    for name in ABOUT_MOLECULES:
        public.write(name, raw.table(name).where_in("molecule_name", molecules))
    files = (f"structures/{molecule}.xyz" for molecule in molecules)
    public.place_each((raw.file(name), name) for name in files)
    private.write("answers.csv", test)
