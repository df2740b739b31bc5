from mlebench.kit import Output, Raw, accepts_paths, split_groups, unique

STRUCTURES = "structures.csv"
ABOUT_MOLECULES = (  # only those of the train split are public
    "dipole_moments.csv",
    "magnetic_shielding_tensors.csv",
    "mulliken_charges.csv",
    "potential_energy.csv",
    "scalar_coupling_contributions.csv",
)


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    # Quirk of v1: nobody can see where the atoms of a test molecule are.
    prepare_with(raw, public, private, structures_of_test=False)


def prepare_with(raw: Raw, public: Output, private: Output, *, structures_of_test: bool) -> None:
    """Prepare the couplings, with the structures of all molecules or of those for training alone."""
    couplings = raw.table("train.csv")
    train, test = split_groups(couplings, "molecule_name", test_size=0.1, seed=0, order="blocks")

    public.write("train.csv", train)
    public.write("test.csv", test.drop("scalar_coupling_constant"))
    public.write("sample_submission.csv", test.select("id").assign(scalar_coupling_constant=0))

    molecules = unique(train["molecule_name"])
    shown = unique(couplings["molecule_name"]) if structures_of_test else molecules
    public.write(STRUCTURES, raw.table(STRUCTURES).where_in("molecule_name", shown))
    for name in ABOUT_MOLECULES:
        public.write(name, raw.table(name).where_in("molecule_name", molecules))
    files = (f"structures/{molecule}.xyz" for molecule in shown)
    public.place_each((raw.file(name), name) for name in files)
    private.write("answers.csv", test)
