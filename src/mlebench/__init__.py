"""mlebench: Kaggle competitions as offline tasks for machine-learning agents."""

__version__ = "2.0.0rc1"
