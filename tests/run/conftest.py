from conftest_run import mlebench, run  # noqa: F401 fixtures
