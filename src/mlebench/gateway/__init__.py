"""The only way from a sandbox to a language model: keys stay here, and calls are checked, counted, paid for and traced.

access.py says what a run may use, prices.py what that costs. policy.py judges a request by the lists in fields.py,
estimate.py says what it may use, wire.py knows the providers' formats, accounting.py keeps count and budget, trace.py
records calls, upstream.py talks to the endpoint, server.py puts these together. process.py is the process of a run,
proxy.py the runner's end of it. scripted/ is an endpoint for trying agents without paying.
"""
