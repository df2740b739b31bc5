from conftest_run import mlebench, run, start  # noqa: F401 fixtures
