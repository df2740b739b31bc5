"""The header Retry-After of an HTTP answer."""

import time
from email.utils import parsedate_to_datetime


def retry_after_seconds(retry_after: str) -> float | None:
    """How long a server asks to wait, from a number of seconds or a date; None if it does not say."""
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, TypeError):
        return None
