"""Turns reports of runs into standings. Reads what runs and grading left on disk; changes nothing."""
