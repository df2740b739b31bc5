"""What an agent is told when it does not get what it asked for."""


class RefusedError(Exception):
    """A request is not answered as the agent wanted; `kind` counts it in the run's record."""

    def __init__(self, status: int, kind: str, message: str):
        super().__init__(message)
        self.status, self.kind = status, kind


def not_found(message: str) -> RefusedError:
    return RefusedError(404, "not_found", message)


def index_failed(message: str) -> RefusedError:
    return RefusedError(502, "index_failed", f"the index {message}")


def limit_reached(message: str) -> RefusedError:
    return RefusedError(403, "limit_reached", message)
