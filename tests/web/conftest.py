from browsing import browser
from conftest_web import own_runs, runs, served

__all__ = ["browser", "own_runs", "runs", "served"]
