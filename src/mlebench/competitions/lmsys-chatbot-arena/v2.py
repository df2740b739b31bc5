"""All conversations that begin with one prompt are on one side of the split (S16)."""

from mlebench.kit import Output, Raw, accepts_paths, join_text, renumber, split_whole_groups

from .prepare import write_parts


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    conversations = raw.table("train.csv")
    train, test = split_whole_groups(conversations, join_text(conversations["prompt"]), test_size=0.1, seed=0)
    write_parts(train, test, public, private)
    private.write("groups.csv", test.select("id").assign(group=renumber(join_text(test["prompt"]))))
