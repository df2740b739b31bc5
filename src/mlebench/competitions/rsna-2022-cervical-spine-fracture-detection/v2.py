"""Nine studies in ten are for training, with all their boxes and segmentations, and the tenth for testing (S24)."""

from mlebench.kit import Output, Raw, accepts_paths, split_groups

from .prepare import prepare_studies, segmented_studies


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_groups(raw.table("train.csv"), "StudyInstanceUID", test_size=0.1, seed=0)
    for_training = train["StudyInstanceUID"].tolist()
    segmented = sorted({*for_training} & {*segmented_studies(raw)})
    prepare_studies(train, test, for_training, segmented, raw, public, private)
