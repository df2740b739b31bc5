"""The fork server that worker processes come from, with every library that they need.

A fork of a process that has threads may hang, and a spawned process would import all anew. The server may be started
before it is known whether it is needed: it imports while its parent is still busy with arguments.
"""

from multiprocessing import forkserver


def start_server(preload: str) -> None:
    """Start the fork server, unless it runs; `preload` is the module that it imports for its workers."""
    forkserver.set_forkserver_preload([preload])
    forkserver.ensure_running()
