"""The order of test photographs says nothing about their species (L12).

Archives have the names and members that they should, and no photograph is listed that is not there (F4).
"""

from mlebench.kit import Output, Raw, accepts_paths

from .prepare import PHOTOS, prepare_catalogues, split_photos


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    photos = raw.archive(PHOTOS)
    train, test = split_photos(raw)
    train, test = prepare_catalogues(train, test.in_secret_order(photos), public, private)
    for name, part in (("train_val2019.tar", train), ("test2019.tar", test)):
        public.pack(name, {name: file for file, name in part.placements(photos)}, format="tar")
