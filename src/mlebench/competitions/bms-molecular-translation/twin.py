from typing import NamedTuple

import numpy as np

from mlebench.kit.twins import TwinFolder, image_bytes, random_hex

STEP, HEIGHT = 4, 18  # pixels from one atom of a drawing to the next, and of a whole drawing
# What can hang on the end of a chain of n carbons: hydrogens beyond 2n, the layer that says where they sit (m = n + 1),
# and how it is drawn.
ENDS = {
    "F": (1, "h2-{n}H2,1H3", ["#####", "#....", "####.", "#....", "#...."]),
    "N": (3, "h2-{m}H2,1H3", ["#...#", "##..#", "#.#.#", "#..##", "#...#"]),
    "O": (2, "h{m}H,2-{n}H2,1H3", [".###.", "#...#", "#...#", "#...#", ".###."]),
    "S": (2, "h{m}H,2-{n}H2,1H3", [".####", "#....", ".###.", "....#", "####."]),
}


class Molecule(NamedTuple):
    carbons: int  # in a chain
    end: str  # the element on the last of them
    heavy: int  # the carbon with a deuterium; 0: none


def twin(raw: TwinFolder) -> None:
    """Signal: a drawing is a zigzag with a step for each carbon, then a letter; a dot over an atom is a deuterium."""
    molecules = _molecules(raw.rng, raw.count(160, least=40))
    ids = _draw(raw, "train", molecules)
    raw.write_csv("train_labels.csv", {"image_id": ids, "InChI": list(map(_inchi, molecules))})

    later = _draw(raw, "test", _molecules(raw.rng, raw.count(40)))
    raw.write_csv("sample_submission.csv", {"image_id": later, "InChI": ["InChI=1S/H2O/h1H2"] * len(later)})
    raw.write_csv("extra_approved_InChIs.csv", {"InChI": list(map(_inchi, _molecules(raw.rng, raw.count(300))))})


def _molecules(rng: np.random.RandomState, count: int) -> list[Molecule]:
    carbons, ends = rng.randint(3, 40, count), rng.choice(list(ENDS), count)
    heavy = np.where(rng.rand(count) < 0.5, 1 + rng.randint(0, carbons), 0)
    return list(map(Molecule, carbons.tolist(), ends.tolist(), heavy.tolist()))


def _inchi(molecule: Molecule) -> str:
    n, end, heavy = molecule
    more, where, _ = ENDS[end]
    chain = "-".join(map(str, range(1, n + 2)))
    isotopes = f"/i{heavy}D" if heavy else ""
    return f"InChI=1S/C{n}H{2 * n + more}{end}/c{chain}/{where.format(n=n, m=n + 1)}{isotopes}"


def _draw(raw: TwinFolder, folder: str, molecules: list[Molecule]) -> list[str]:
    ids = sorted(random_hex(raw.rng, len(molecules), digits=12))
    for id, molecule in zip(ids, molecules, strict=True):
        raw.write(f"{folder}/{id[0]}/{id[1]}/{id[2]}/{id}.png", image_bytes(_drawing(raw.rng, molecule), "PNG"))
    return ids


def _drawing(rng: np.random.RandomState, molecule: Molecule) -> np.ndarray:
    """Black on white, with specks, in a frame of random size."""
    left, right = rng.randint(2, 12, 2)
    x = np.arange(STEP * molecule.carbons + 1)
    y = 9 + np.abs(x % (2 * STEP) - STEP)
    pixels = np.full((HEIGHT, left + len(x) + 7 + right), 255, dtype=np.uint8)
    pixels[rng.rand(*pixels.shape) < 0.005] = 0
    pixels[y, left + x] = 0
    letter = np.array([list(line) for line in ENDS[molecule.end][2]]) == "#"
    pixels[9:14, left + len(x) + 1 : left + len(x) + 6][letter] = 0
    if molecule.heavy:
        atom = left + STEP * (molecule.heavy - 1)
        pixels[3:6, atom : atom + 3] = 0
    return pixels
