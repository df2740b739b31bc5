import numpy as np

from mlebench.kit.twins import TwinFolder, image_bytes, random_hex

NAMES = """
    affenpinscher afghan_hound african_hunting_dog airedale american_staffordshire_terrier appenzeller
    australian_terrier basenji basset beagle bedlington_terrier bernese_mountain_dog black-and-tan_coonhound
    blenheim_spaniel bloodhound bluetick border_collie border_terrier borzoi boston_bull bouvier_des_flandres boxer
    brabancon_griffon briard brittany_spaniel bull_mastiff cairn cardigan chesapeake_bay_retriever chihuahua chow
    clumber cocker_spaniel collie curly-coated_retriever dandie_dinmont dhole dingo doberman english_foxhound
    english_setter english_springer entlebucher eskimo_dog flat-coated_retriever french_bulldog german_shepherd
    german_short-haired_pointer giant_schnauzer golden_retriever gordon_setter great_dane great_pyrenees
    greater_swiss_mountain_dog groenendael ibizan_hound irish_setter irish_terrier irish_water_spaniel irish_wolfhound
    italian_greyhound japanese_spaniel keeshond kelpie kerry_blue_terrier komondor kuvasz labrador_retriever
    lakeland_terrier leonberg lhasa malamute malinois maltese_dog mexican_hairless miniature_pinscher miniature_poodle
    miniature_schnauzer newfoundland norfolk_terrier norwegian_elkhound norwich_terrier old_english_sheepdog
    otterhound papillon pekinese pembroke pomeranian pug redbone rhodesian_ridgeback rottweiler saint_bernard saluki
    samoyed schipperke scotch_terrier scottish_deerhound sealyham_terrier shetland_sheepdog shih-tzu siberian_husky
    silky_terrier soft-coated_wheaten_terrier staffordshire_bullterrier standard_poodle standard_schnauzer
    sussex_spaniel tibetan_mastiff tibetan_terrier toy_poodle toy_terrier vizsla walker_hound weimaraner
    welsh_springer_spaniel west_highland_white_terrier whippet wire-haired_fox_terrier yorkshire_terrier
"""
BREEDS = NAMES.split()
SHADES = np.array([20, 75, 130, 185, 240])  # of red, green and blue: enough for 125 breeds
SIDES = (16, 20, 24)


def twin(raw: TwinFolder) -> None:
    """Signal: every breed has its own coat colour, which fills the middle of the photo."""
    train = sorted(random_hex(raw.rng, raw.count(320, least=160), digits=32))
    later = sorted(random_hex(raw.rng, raw.count(20), digits=32))
    popularity = raw.rng.uniform(0.5, 1, len(BREEDS))
    others = raw.rng.choice(len(BREEDS), len(train) - len(BREEDS), p=popularity / popularity.sum())
    breed = raw.rng.permutation(np.concatenate([np.arange(len(BREEDS)), others]))  # none is missing
    raw.write_csv("labels.csv", {"id": train, "breed": [BREEDS[number] for number in breed]})
    raw.write_csv("sample_submission.csv", {"id": later, **{name: [1 / len(BREEDS)] * len(later) for name in BREEDS}})

    for id, number in zip(train, breed, strict=True):
        raw.write(f"train/{id}.jpg", _photo(raw.rng, number))
    for id in later:
        raw.write(f"test/{id}.jpg", _photo(raw.rng, raw.rng.randint(len(BREEDS))))


def _photo(rng: np.random.RandomState, breed: int) -> bytes:
    pixels = np.full((rng.choice(SIDES), rng.choice(SIDES), 3), rng.randint(0, 256, 3))
    coat = SHADES[[breed // 25, breed // 5 % 5, breed % 5]]
    pixels[2:-2, 2:-2] = coat + rng.randint(-12, 13, 3)
    return image_bytes(np.clip(pixels, 0, 255), "JPEG")
