"""Archives have the names and members that they should, and no photograph is listed that is not there (F4)."""

from mlebench.kit import Output, Raw, accepts_paths

from .prepare import PHOTOS, prepare_catalogues


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = prepare_catalogues(raw, public, private)
    photos = raw.archive(PHOTOS)
    for name, part in (("train_val2019.tar", train), ("test2019.tar", test)):
        public.pack(name, {name: file for file, name in part.placements(photos)}, format="tar")
