"""Bundles: a run group in one archive, for somebody else to check. docs/bundles.md tells what is in one.

A bundle comes from a stranger. Nothing of it is executed, no name in it becomes a path on this machine, and what it
says about scores is a claim until the submissions have been graded here.
"""
