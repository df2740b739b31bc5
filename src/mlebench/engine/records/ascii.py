"""JSON in ASCII: other characters as escapes, as Python and pandas print them."""

import codecs
from functools import cache
from json.encoder import encode_basestring_ascii


def in_ascii(text: bytes) -> bytes:
    """JSON in UTF-8, with every character beyond ASCII escaped: there are none outside its texts."""
    if text.isascii():
        return text
    return text.decode("utf-8").encode("ascii", _escaping())


@cache
def _escaping() -> str:
    """The name under which the codec finds what to write in place of characters it cannot encode."""
    name = "mlebench.json-escapes"
    codecs.register_error(name, _escaped)
    return name


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return encode_basestring_ascii(error.object[error.start : error.end])[1:-1], error.end
