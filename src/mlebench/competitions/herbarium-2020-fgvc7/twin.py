import numpy as np

from mlebench.kit.twins import TwinCategories, TwinFolder, records_of, write_catalogue_twin

MOST_SPECIES = 32_094  # as in the original
FAMILIES = ("Asteraceae", "Poaceae", "Orchidaceae", "Fabaceae")
GENERA = ("Solidago", "Poa", "Maxillaria", "Inga")


def twin(raw: TwinFolder) -> None:
    """Signal: sheets of one species have one colour, a little lighter or darker from sheet to sheet."""
    species = TwinCategories(raw.rng, min(raw.count(24, least=14), MOST_SPECIES))
    family = raw.rng.randint(0, len(FAMILIES), len(species.ids))
    categories = {
        "family": np.array(FAMILIES)[family],
        "genus": np.array(GENERA)[family],
        "id": species.ids,
        "name": [f"{GENERA[place]} ×españa-{number}" for place, number in zip(family, species.ids, strict=True)],
    }
    regions = {"id": range(4), "name": ["Andes", "Amazônia", "Caribbean", "Québec"]}
    others = {"categories": records_of(categories), "regions": records_of(regions)}
    # In the original's encoding, which is not UTF-8.
    ids = write_catalogue_twin(raw, "nybg2020/", species, others, place="region_id", encoding="latin-1")
    raw.write_csv("sample_submission.csv", {"Id": ids, "Predicted": [0] * len(ids)})
