"""Reports of runs → standings. Reads what runs and grading left on disk; changes nothing."""
