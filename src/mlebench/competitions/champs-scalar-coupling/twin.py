from typing import NamedTuple

import numpy as np

from mlebench.kit.twins import TwinFolder, rounded

MOLECULES = 133_885  # in all; only some are in the data
SHIELDING = [f"{column}{row}" for row in "XYZ" for column in "XYZ"]


class Atoms(NamedTuple):
    """The atoms of all molecules, one molecule after the other."""

    names: np.ndarray  # of the molecules
    starts: np.ndarray  # the number of each molecule's first atom
    sizes: np.ndarray
    molecule: np.ndarray  # of each atom, and its place in it, its element and its position
    place: np.ndarray
    element: np.ndarray
    position: np.ndarray


def twin(raw: TwinFolder) -> None:
    """Signal: a coupling is large between atoms that are close, and its level depends on its type."""
    rng, count, later = raw.rng, raw.count(60, least=25), raw.count(15)
    atoms = _atoms(rng, count + later)
    _write_structures(raw, atoms)
    in_train = rng.permutation(np.arange(count + later) < count)
    _write_properties(raw, atoms, in_train)

    one, two = _pairs(rng, atoms)
    distance = np.linalg.norm(atoms.position[one] - atoms.position[two], axis=1)
    kind, parts = _couplings(rng, distance, atoms.element[two])
    pairs = {
        "molecule_name": atoms.names[atoms.molecule[one]],
        "atom_index_0": atoms.place[one],
        "atom_index_1": atoms.place[two],
        "type": kind,
    }
    known = in_train[atoms.molecule[one]]
    ids = np.arange(len(one))
    train = {"id": ids[: known.sum()], **{name: values[known] for name, values in pairs.items()}}
    raw.write_csv("train.csv", train | {"scalar_coupling_constant": rounded(np.sum(list(parts.values()), 0)[known], 4)})
    test = {"id": ids[known.sum() :], **{name: values[~known] for name, values in pairs.items()}}
    raw.write_csv("test.csv", test)
    raw.write_csv("sample_submission.csv", {"id": test["id"], "scalar_coupling_constant": [0] * len(test["id"])})
    contributions = {name: values[known] for name, values in {**pairs, **parts}.items()}
    raw.write_csv("scalar_coupling_contributions.csv", contributions)


def _atoms(rng: np.random.RandomState, count: int) -> Atoms:
    numbers = np.sort(rng.permutation(MOLECULES)[:count]) + 1
    sizes = rng.randint(6, 13, count)
    starts = np.cumsum(sizes) - sizes
    molecule = np.repeat(np.arange(count), sizes)
    element = rng.choice(list("HHHHCCNO"), len(molecule)).astype(object)
    element[starts], element[starts + 1] = rng.choice(["C", "N"], count), "H"
    position = rounded(rng.uniform(-1.5, 1.5, (len(molecule), 3)))
    position[::17, 0] = 0.000005  # which pandas prints with an exponent
    names = np.array([f"dsgdb9nsd_{number:06d}" for number in numbers], dtype=object)
    return Atoms(names, starts, sizes, molecule, np.arange(len(molecule)) - starts[molecule], element, position)


def _write_structures(raw: TwinFolder, atoms: Atoms) -> None:
    x, y, z = atoms.position.T
    columns = {"molecule_name": atoms.names[atoms.molecule], "atom_index": atoms.place, "atom": atoms.element}
    columns |= {"x": x, "y": np.char.mod("%.10f", y), "z": z}  # y with zeros at its end, as the original has them
    raw.write_csv("structures.csv", columns)
    rows = zip(atoms.element, atoms.position.tolist(), strict=True)
    lines = np.array([f"{element} {' '.join(map(str, position))}\n" for element, position in rows])
    for name, start, size in zip(atoms.names, atoms.starts, atoms.sizes, strict=True):
        raw.write(f"structures/{name}.xyz", f"{size}\n\n{''.join(lines[start : start + size])}".encode())


def _write_properties(raw: TwinFolder, atoms: Atoms, in_train: np.ndarray) -> None:
    """What else is known about the molecules in train."""
    rng, names, known = raw.rng, atoms.names[in_train], in_train[atoms.molecule]
    of_atoms = {"molecule_name": atoms.names[atoms.molecule[known]], "atom_index": atoms.place[known]}
    tensors = rounded(rng.uniform(-80, 320, (len(SHIELDING), known.sum())), 4)
    raw.write_csv("magnetic_shielding_tensors.csv", of_atoms | dict(zip(SHIELDING, tensors, strict=True)))
    raw.write_csv("mulliken_charges.csv", of_atoms | {"mulliken_charge": rounded(rng.uniform(-0.5, 0.5, known.sum()))})
    moments = dict(zip("XYZ", rounded(rng.uniform(-3, 3, (3, len(names))), 4), strict=True))
    raw.write_csv("dipole_moments.csv", {"molecule_name": names, **moments})
    energy = rounded(-40 * atoms.sizes[in_train] - rng.rand(len(names)), 5)
    raw.write_csv("potential_energy.csv", {"molecule_name": names, "potential_energy": energy})


def _pairs(rng: np.random.RandomState, atoms: Atoms) -> tuple[np.ndarray, np.ndarray]:
    """Every hydrogen atom with the first atom of its molecule, and with another one unless that is oxygen."""
    hydrogen = np.flatnonzero(atoms.element == "H")
    first, size = (values[atoms.molecule[hydrogen]] for values in (atoms.starts, atoms.sizes))
    other = first + 1 + (rng.rand(len(hydrogen)) * (size - 1)).astype(int)
    pairs = np.stack([np.repeat(hydrogen, 2), np.column_stack([first, other]).ravel()])
    one, two = pairs[:, (pairs[0] != pairs[1]) & (atoms.element[pairs[1]] != "O")]
    return one, two


def _couplings(
    rng: np.random.RandomState, distance: np.ndarray, partner: np.ndarray
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The type of each coupling, and the four contributions that make its constant."""
    bonds = 1 + (distance > 1.2) + (distance > 2.2)
    bonds = np.where(partner == "H", np.maximum(bonds, 2), bonds)
    kind = np.array([f"{number}JH{atom}" for number, atom in zip(bonds, partner, strict=True)], dtype=object)
    level = np.choose(bonds - 1, [95.0, -2.0, 5.0]) * np.where(partner == "N", 0.5, 1.0)
    contact = level + 3 / np.maximum(rounded(distance, 2), 0.3) + rng.uniform(-0.5, 0.5, len(distance))
    small = rounded(rng.uniform(-0.4, 0.4, (3, len(distance))))
    return kind, {"fc": rounded(contact), "sd": small[0], "pso": small[1], "dso": small[2]}
