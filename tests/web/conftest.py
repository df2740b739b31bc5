from conftest_web import own_runs, runs, served

__all__ = ["own_runs", "runs", "served"]
