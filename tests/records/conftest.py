from conftest_run import mlebench  # noqa: F401 a fixture
