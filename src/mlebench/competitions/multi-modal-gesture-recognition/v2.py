"""Test samples lack the labels to predict (L3), and an empty sequence is a prediction like any other (G23)."""

from mlebench.kit import ByteChunks, Output, Raw, RawFile, accepts_paths

from .prepare import TEST_SAMPLES, prepare_all_but_samples


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    prepare_all_but_samples(raw, public, private)
    archive = raw.archive(TEST_SAMPLES)
    samples = {file.name: _without_labels(archive.archive(file.name)) for file in archive.files("Sample*.zip")}
    public.pack("test.tar.gz", samples)


def _without_labels(sample: Raw) -> dict[str, RawFile | ByteChunks]:
    return {
        file.name: sample.without_struct_field(file.name, "Video", "Labels") if file.path.suffix == ".mat" else file
        for file in sample.files("**")
    }
