from mlebench.kit import Output, Raw, accepts_paths, split_groups, unique

VIEWS = ("All29", "Endzone", "Sideline")


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_groups(raw.table("train_labels.csv"), "game_play", test_size=0.1, seed=0)

    public.write("train_labels.csv", train)
    public.write("sample_submission.csv", test.select("contact_id").assign(contact=0))

    tables = {
        name: raw.table(f"train_{name}.csv") for name in ("baseline_helmets", "player_tracking", "video_metadata")
    }
    for side, plays in (("train", unique(train["game_play"])), ("test", unique(test["game_play"]))):
        for name, table in tables.items():
            public.write(f"{side}_{name}.csv", table.where_in("game_play", plays))
        videos = [f"{play}_{view}.mp4" for play in plays for view in VIEWS]
        public.place_each((raw.file(f"train/{video}"), f"{side}/{video}") for video in videos)
    private.write("test.csv", test)
