"""Records of test pictures do not hold the label (L2)."""

from mlebench.kit import Output, Raw, accepts_paths

from .prepare import prepare_with_features


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    prepare_with_features(["image", "image_name"], raw, public, private)
