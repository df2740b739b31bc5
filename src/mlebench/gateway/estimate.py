"""What a request may use, before it is sent. What it has really used is known only afterwards.

The weights were measured with the tokenizers o200k and Claude's on code, prose in seven languages, JSON, tables, logs
and noise: for ordinary text the estimate is 1 to 1.9 times the larger of the two counts, for random text 0.6 to 1.4.
The worst that was found is a third, for letters repeated in an order that no language has.
"""

import binascii
import re
import zlib
from dataclasses import dataclass
from typing import Any

from mlebench.gateway import policy
from mlebench.gateway.apis import api_of, thinking_budget
from mlebench.gateway.fields import CONTENT_FIELDS, GOOGLE_OPAQUE, OPAQUE
from mlebench.gateway.policy import AcceptedRequest

# Tokens for a byte of each kind
_PUNCTUATION = bytes(byte for byte in range(33, 127) if not chr(byte).isalnum())
_WEIGHTS = {
    b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ": 0.32,
    b"0123456789": 0.8,
    b" ": 0.1,
    _PUNCTUATION: 0.9,
    bytes(range(128, 256)): 0.55,
    bytes((*range(32), 127)): 1.0,
}
_PACKED = 0.9  # tokens for a byte of compressed text: noise has more tokens than its letters suggest
# How files begin. What a request says about a file is not believed: a text that is called an image is still a text.
_IMAGE, _SOUND, _PDF = "image", "sound or video", "pdf"
_BEGINNINGS = {
    _IMAGE: rb"\x89PNG|\xff\xd8\xff|GIF8|RIFF....WEBP|BM....\0\0|II\*\0|MM\0\*|....ftyp(avif|heic|mif1)",
    _SOUND: rb"RIFF....(WAVE|AVI )|ID3|\xff[\xe0-\xff]|OggS|fLaC|\x1aE\xdf\xa3|....ftyp",
    _PDF: rb"%PDF-",
}
# Tokens for a character of a file in base64. A page of a PDF has text and is also shown to the model as a picture.
_TOKENS = {_SOUND: 1 / 20, _PDF: 1 / 5}
_OTHER_FILE = 1 / 2
_SEALED = 1 / 3  # what only the provider can read: reasoning that it gave us to send back
LEAST_THINKING = 1024  # tokens; Anthropic refuses a smaller budget of thinking
_IMAGE_TOKENS = 5_000  # providers reduce larger ones
_OPAQUE = OPAQUE | GOOGLE_OPAQUE
_SHORTEST_FILE = 200  # characters; what is shorter counts as text
# Fields that hold files; in the second ones a provider may take for text what begins as an image.
_MEDIA, _FILE, _SEAL = "media", "file", "seal"
_SEALS = dict.fromkeys(("encrypted_content", "signature", "thought_signature", "thoughtSignature"), _SEAL)
_HOLDERS = {
    **dict.fromkeys(("url", "image_url", "video_url", "audio_url", "image", "video", "audio", "data"), _MEDIA),
    **dict.fromkeys(("file_url", "file_data"), _FILE),
    **_SEALS,
}


@dataclass(frozen=True)
class CallEstimate:
    """The most that a call can use."""

    model: str
    input: int
    output_limit: int | None = None  # tokens of one answer, if the request limits it
    answers: int = 1
    least: int = 256  # tokens; a shorter answer is not worth its request
    predicted: int = 0  # tokens that the request predicts, charged as output where they do not fit
    cache: str | None = None  # SHORT or LONG


def estimate_call(path: str, checked: AcceptedRequest) -> CallEstimate:
    api, body = api_of(path), checked.body
    return CallEstimate(
        checked.model,
        estimated_input(body),
        policy.requested_output(path, body),
        api.answers(body),
        least=LEAST_THINKING + 1 if thinking_budget(body) else CallEstimate.least,
        predicted=estimated_input({"prediction": body["prediction"]}) if body.get("prediction") else 0,
        cache=checked.cache or api.usual_cache,
    )


def estimated_input(body: dict[str, Any]) -> int:
    """About how many tokens a request has."""
    texts: list[str] = []
    files = sum(_gather(value, texts, is_opaque=name not in CONTENT_FIELDS) for name, value in body.items())
    return int(files + estimated_text("\n".join(texts))) + 1


def estimated_text(text: str) -> float:
    data = text.encode("utf-8", "surrogatepass")
    counted = sum(weight * (len(data) - len(data.translate(None, kind))) for kind, weight in _WEIGHTS.items())
    return max(counted, _PACKED * len(zlib.compress(data, 1)))


def _gather(value: Any, texts: list[str], holder: str | None = None, *, is_opaque: bool = False) -> float:
    """Collect the texts in a request; return the tokens of files in it. `holder` is the kind of the field around it."""
    match value:
        case str():
            tokens = None if holder is None else _file(value, holder)
            if tokens is None:
                texts.append(value)
            return tokens or 0.0
        case dict():
            texts.extend(value)
            # Anthropic's documents of text have it in the field for files.
            holders = {} if is_opaque else _SEALS if value.get("type") == "text" else _HOLDERS
            return sum(
                _gather(item, texts, holders.get(name), is_opaque=is_opaque or name in _OPAQUE)
                for name, item in value.items()
            )
        case list():
            return sum(_gather(item, texts, holder, is_opaque=is_opaque) for item in value)
    texts.append(str(value))
    return 0.0


def _file(text: str, holder: str) -> float | None:
    """The tokens of a file; None for text."""
    kind = _kind_of(text)
    if holder == _MEDIA and kind == _IMAGE:
        return _IMAGE_TOKENS
    if len(text) < _SHORTEST_FILE:
        return None
    return len(text) * (_SEALED if holder == _SEAL else _TOKENS.get(kind, _OTHER_FILE))


def _kind_of(text: str) -> str:
    """What a file in base64 is, by its first bytes; empty if they do not say."""
    content = text[:200].partition(",")[2] if text.startswith("data:") else text[:200]
    try:
        data = binascii.a2b_base64(content[:24])
    except ValueError:
        return ""
    return next((kind for kind, start in _BEGINNINGS.items() if re.match(start, data, re.DOTALL)), "")
