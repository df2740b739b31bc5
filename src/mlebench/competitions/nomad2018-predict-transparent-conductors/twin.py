import numpy as np

from mlebench.kit.twins import TwinFolder

TARGETS = ("formation_energy_ev_natom", "bandgap_energy_ev")
ATOMS_OF_SPACEGROUP = {12: 20, 33: 80, 167: 30, 194: 10, 206: 80, 227: 80}


def twin(raw: TwinFolder) -> None:
    """Signal: the band gap falls with the share of indium; formation energy follows the space group and aluminium."""
    train = _materials(raw.rng, raw.count(120, least=30))
    test = _materials(raw.rng, raw.count(30))
    raw.write_zipped_csv("train.csv", train)
    guess = {"id": test["id"], TARGETS[0]: ["0.1779"] * len(test["id"]), TARGETS[1]: ["1.8892"] * len(test["id"])}
    raw.write_zipped_csv("sample_submission.csv", guess)

    geometries = _geometries(raw.rng, train, "train")
    # As in the original, one folder holds a second file.
    first = f"train/{len(train['id']) // 3}/geometry.xyz"
    geometries[first.replace("geometry", "tmp_geometry")] = geometries[first].replace(b"#\n", b"# again\n", 1)
    raw.write_zip("train.zip", geometries)
    raw.write_zip("test.zip", _geometries(raw.rng, test, "test"))
    for name in TARGETS:
        del test[name]
    raw.write_zipped_csv("test.csv", test)


def _materials(rng: np.random.RandomState, count: int) -> dict[str, list]:
    """Cells as the original prints them: four decimals, and the number of atoms as a float.

    Many rows agree with one of the first half, except in where their atoms lie, and so nearly in their energies.
    """
    like = np.where(rng.rand(count) < 0.6, rng.randint(0, count // 2, count), np.arange(count))
    groups = rng.choice(list(ATOMS_OF_SPACEGROUP), count)[like]
    atoms = np.array([ATOMS_OF_SPACEGROUP[group] for group in groups.tolist()])
    metals = atoms * 2 // 5  # (Al, Ga, In)₂O₃: two of five atoms are metals
    aluminium = (rng.rand(count)[like] * (metals + 1)).astype(int)
    gallium = (rng.rand(count)[like] * (metals - aluminium + 1)).astype(int)
    indium = metals - aluminium - gallium
    swelling = 1 + 0.06 * indium / metals
    formation = 0.02 * (groups % 7) + 0.12 * aluminium / metals * (1 - aluminium / metals) + 0.01 * rng.rand(count)
    bandgap = 4.5 - 3.2 * indium / metals + 0.1 * rng.rand(count)
    columns: dict[str, list] = {
        "id": list(range(1, count + 1)),
        "spacegroup": groups.tolist(),
        "number_of_total_atoms": [f"{number:.1f}" for number in atoms.tolist()],
    }
    for name, part in (("al", aluminium), ("ga", gallium), ("in", indium)):
        columns[f"percent_atom_{name}"] = _decimals(part / metals)
    for axis, length in enumerate((5.5, 6.2, 9.4), start=1):
        columns[f"lattice_vector_{axis}_ang"] = _decimals(length * swelling * (1 + 0.02 * rng.rand(count)[like]))
    for name, degrees in (("alpha", 90), ("beta", 90), ("gamma", 120)):
        columns[f"lattice_angle_{name}_degree"] = _decimals(degrees + 0.02 * (rng.rand(count)[like] - 0.5))
    columns[TARGETS[0]] = _decimals(formation)
    columns[TARGETS[1]] = _decimals(bandgap)
    return columns


def _decimals(values: np.ndarray) -> list[str]:
    return [f"{value:.4f}" for value in values.tolist()]


def _geometries(rng: np.random.RandomState, materials: dict[str, list], folder: str) -> dict[str, bytes]:
    lengths = zip(*(materials[f"lattice_vector_{axis}_ang"] for axis in (1, 2, 3)), strict=True)
    shares = zip(*(materials[f"percent_atom_{name}"] for name in ("al", "ga", "in")), strict=True)
    files = {f"{folder}/": b""}
    for id, atoms, box, share in zip(materials["id"], materials["number_of_total_atoms"], lengths, shares, strict=True):
        total = int(float(atoms))
        counts = [round(float(part) * (total * 2 // 5)) for part in share]
        elements = [name for name, times in zip(("Al", "Ga", "In"), counts, strict=True) for _ in range(times)]
        elements += ["O"] * (total - len(elements))
        corners = [[length if row == axis else "0.0000" for axis in range(3)] for row, length in enumerate(box)]
        places = (rng.rand(total, 3) * np.array(box, dtype=float)).tolist()
        lines = ["#", *(f"lattice_vector {x} {y} {z}" for x, y, z in corners)]
        lines += [f"atom {x:.5f} {y:.5f} {z:.5f} {name}" for (x, y, z), name in zip(places, elements, strict=True)]
        files[f"{folder}/{id}/geometry.xyz"] = ("\n".join(lines) + "\n").encode("ascii")
    return files
