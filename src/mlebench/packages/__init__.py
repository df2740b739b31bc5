"""Packages for a run without a network: an index on the host, of a folder of wheels or of one index on the network.

`server` answers what an agent's pip and uv ask, `sources` has the files, `proxy` starts the process of one run, and
`layer` is what makes `pip install` work inside a sandbox.
"""
