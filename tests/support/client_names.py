"""Every name that public clients of the reference import. As a program, it imports them all.

It needs nothing but an installed mlebench: `make release` runs it in empty environments.
"""

from importlib import import_module

CLIENT_NAMES = {
    "mlebench": (),
    "mlebench.registry": ("DEFAULT_DATA_DIR", "Competition", "Registry", "registry"),
    "mlebench.data": (
        "create_prepared_dir",
        "download_and_prepare_dataset",
        "download_dataset",
        "extract",
        "generate_checksums",
        "get_checksum",
        "get_leaderboard",
        "is_dataset_prepared",
        "is_empty",
    ),
    "mlebench.grade": ("aggregate_reports", "grade_csv", "grade_jsonl", "is_dataset_prepared", "validate_submission"),
    "mlebench.grade_helpers": ("CompetitionReport", "Grader", "InvalidSubmissionError"),
    "mlebench.utils": (
        "authenticate_kaggle_api",
        "compress",
        "create_run_dir",
        "extract",
        "get_diff",
        "get_logger",
        "get_module_dir",
        "get_path_to_callable",
        "get_repo_dir",
        "get_runs_dir",
        "get_timestamp",
        "import_fn",
        "in_ci",
        "load_answers",
        "load_yaml",
        "purple",
        "read_csv",
        "read_jsonl",
    ),
    "mlebench.competitions.utils": (
        "df_to_one_hot",
        "get_ids_from_tf_records",
        "is_one_hot_encoded",
        "one_hot_dfs_to_log_loss_inputs",
        "prepare_for_accuracy_metric",
        "prepare_for_auroc_metric",
        "rle_decode",
        "rle_encode",
        "rles_to_masks",
    ),
    "mlebench.metrics": ("average_precision_at_k", "dice_coefficient", "mean_average_precision_at_k"),
    "mlebench.competitions.spaceship-titanic.grade": ("grade",),
    "mlebench.competitions.spaceship-titanic.prepare": ("prepare",),
}


def missing_names() -> list[str]:
    return [
        f"{module}.{name}"
        for module, names in CLIENT_NAMES.items()
        for name in names
        if not hasattr(import_module(module), name)
    ]


if __name__ == "__main__":
    if missing := missing_names():
        raise SystemExit(f"Names that clients import are missing: {', '.join(missing)}")
