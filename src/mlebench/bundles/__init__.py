"""Bundles: a run group in one archive, for others to check. docs/bundles.md says what is in one.

A bundle comes from a stranger. Nothing in it is executed, no name in it becomes a path on this machine, and its scores
are claims until the submissions have been graded here.
"""
