"""Catalogues of images: JSON in the style of COCO, where each image has one annotation that gives its category."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mlebench.core.errors import RawDataError
from mlebench.engine.records.jsonrecords import Records
from mlebench.engine.tables import Table
from mlebench.kit.raw import Raw, RawFile
from mlebench.kit.secret_draws import secret_order
from mlebench.kit.splits import split_per_class

Record = dict[str, Any]


@dataclass(frozen=True)
class ImageCatalogue:
    """Images and their annotations, side by side."""

    images: Records
    annotations: Records
    others: Record  # what else the JSON holds: categories, licenses and the like
    id: str  # the field of an image with its id; annotations call it `image_id`
    raw_names: Sequence[str]  # `file_name` of each image before it was changed

    @classmethod
    def read(cls, raw: Raw, name: str, *, id: str = "id", encoding: str = "utf-8") -> "ImageCatalogue":
        parts = raw.json_with_records(name, "images", "annotations", encoding=encoding)
        images, annotations = parts.pop("images"), parts.pop("annotations")
        if len(images) != len(annotations) or (images and images.values(id) != annotations.values("image_id")):
            raise RawDataError(f"{name} does not list images and annotations in one order")
        return cls(images, annotations, parts, id, images.values("file_name") if images else [])

    @property
    def categories(self) -> list[int]:
        return self.annotations.values("category_id")

    def split(self, *, test_size: float, seed: int, small_below: int = 0) -> "tuple[ImageCatalogue, ImageCatalogue]":
        """Train and test, category by category; see `split_per_class`."""
        classes = np.array(self.categories)
        train, test = split_per_class(classes, test_size=test_size, seed=seed, small_below=small_below)
        return self.take(train), self.take(test)

    def take(self, rows: np.ndarray) -> "ImageCatalogue":
        numbers = rows.tolist()
        images, annotations = self.images.take(numbers), self.annotations.take(numbers)
        return replace(self, images=images, annotations=annotations, raw_names=[self.raw_names[row] for row in numbers])

    def in_secret_order(self, raw: Raw, raw_folder: str = "") -> "ImageCatalogue":
        """Return the images in an order that says nothing about the order of the raw data."""
        return self.take(secret_order([file for file, _ in self.placements(raw, raw_folder)]))

    def renamed(self, file_names: Sequence[str], ids: Sequence[Any] | None = None) -> "ImageCatalogue":
        """Return a catalogue of the images under other names and, if given, with other ids."""
        named = replace(self, images=self.images.with_values(file_name=file_names))
        if ids is None:
            return named
        annotations = self.annotations.with_values(image_id=ids)
        return replace(named, images=named.images.with_values(**{self.id: ids}), annotations=annotations)

    def numbered(self, file_name: str) -> "ImageCatalogue":
        """Return the images with ids from `0` on; new names may contain `{number}`, the id, and `{thousand}`."""
        names = [file_name.format(number=number, thousand=number // 1000) for number in range(len(self.images))]
        return self.renamed(names, list(map(str, range(len(names)))))

    def labels(self, id: str, target: str) -> Table:
        """A table of ids and categories, with these column names."""
        return Table.from_columns({id: self.images.values(self.id), target: self.categories})

    def as_json(self, *names: str) -> Record:
        """What the JSON says, or only the named parts of it."""
        document = {**self.others, "images": self.images, "annotations": self.annotations}
        return {name: document[name] for name in names or document}

    def placements(self, raw: Raw, raw_folder: str = "", folder: str = "") -> Iterator[tuple[RawFile, str]]:
        """The file of each image and its name, each below a folder; `place_each` takes them."""
        for raw_name, name in zip(self.raw_names, self.images.values("file_name"), strict=True):
            yield raw.file(raw_folder + raw_name), folder + name
