"""What an agent did: rule violations, failures, copied code. Judging never changes what is judged.

`subjects` says what is looked at: the runs of a group, or the lines of a JSON-lines file. `findings` is what a tool
writes down about one of them. Everything that an agent left is hostile, and read through `untrusted` only.
"""
