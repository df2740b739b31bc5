from conftest_run import mlebench, run, start

__all__ = ["mlebench", "run", "start"]
