import numpy as np

from mlebench.kit.twins import TwinCategories, TwinFolder, records_of, write_catalogue_twin

MOST_TAXA = 64_500  # as in the original
ORDERS = ("Asterales", "Poales", "Myrtales", "Polypodiales")
FAMILIES = ("Asteraceae", "Cyperaceae", "Myrtaceae", "Pteridaceae")


def twin(raw: TwinFolder) -> None:
    """Signal: sheets of one taxon have one colour, a little lighter or darker from sheet to sheet."""
    taxa = TwinCategories(raw.rng, min(raw.count(24, least=14), MOST_TAXA))
    family = raw.rng.randint(0, len(FAMILIES), len(taxa.ids))
    categories = {
        "family": np.array(FAMILIES)[family],
        "id": taxa.ids,
        "name": [f'Genus "né" {number} Müll. 植' for number in taxa.ids],
        "order": np.array(ORDERS)[family],
    }
    institutions = {"id": range(4), "name": ["New York", "Bishop Museum, Honolulu", "Naturalis", "Queensland \\ Qld"]}
    others = {"categories": records_of(categories), "institutions": records_of(institutions)}
    ids = write_catalogue_twin(raw, "", taxa, others, place="institution_id")
    raw.write_csv("sample_submission.csv", {"Id": ids, "Predicted": [0] * len(ids)})
