from mlebench.kit import Output, Raw, accepts_paths, join_text, split_groups

NOT_IN_TEST = ("cancer", "biopsy", "invasive", "BIRADS", "density", "difficult_negative_case")


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_groups(raw.table("train.csv"), "patient_id", test_size=0.1, seed=42)
    test = test.assign(prediction_id=join_text(test["patient_id"], "_", test["laterality"]))
    answers = test.select("prediction_id", "cancer").group_first("prediction_id")  # a breast has several images

    public.write("train.csv", train)
    public.write("test.csv", test.drop(*NOT_IN_TEST))
    public.write("sample_submission.csv", answers.assign(cancer=float(train["cancer"].mean())))
    for folder, part in (("train_images", train), ("test_images", test)):
        images = join_text(part["patient_id"], "/", part["image_id"], ".dcm")
        public.place_each((raw.file(f"train_images/{image}"), f"{folder}/{image}") for image in images)
    private.write("answers.csv", answers)
