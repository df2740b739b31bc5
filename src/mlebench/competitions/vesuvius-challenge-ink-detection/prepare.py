from mlebench.kit import Output, Raw, Table, accepts_paths, png_size

# Files that reveal the ink; in the infrared photograph it is visible to the naked eye.
SECRET = ("**/inklabels.png", "**/inklabels_rle.csv", "**/ir.png")


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    width, height = png_size(raw.file("train/3/ir.png").head(24))
    ink = raw.table("train/3/inklabels_rle.csv").assign(width=width, height=height, Id="a")

    public.place_tree(raw, "train/1", "train/1")
    public.place_tree(raw, "train/2", "train/2")
    public.place_tree(raw, "train/3", "test/a", exclude=SECRET)
    public.write("sample_submission.csv", Table.from_columns({"Id": ["a"], "Predicted": ["1 1 5 1"]}))
    private.write("inklabels_rle.csv", ink)
    private.write("gold_submission.csv", ink.drop("width", "height"))
