"""What an agent did: rule violations, failures, copied code. Judging never changes what is judged.

`subjects` are what is inspected: the runs of a group, or the lines of a JSON-lines file. `findings` are what a tool
records about one of them. Everything that an agent left is hostile, and read through `untrusted` only.
"""
