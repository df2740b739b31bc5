"""What every other package stands on: errors, paths, files, processes, leases, secrets, untrusted input."""
