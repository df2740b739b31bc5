from kaggle_fixtures import kaggle, login  # noqa: F401 fixtures
