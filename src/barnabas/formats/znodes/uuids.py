"""Topic and cluster ids as text: sixteen bytes in 22 characters of URL-safe base64."""

import base64
import re

from barnabas.model.errors import DecodeError

_TEXT = re.compile(r"[A-Za-z0-9_-]{22}(==)?")


def uuid_text(uuid: bytes) -> str:
    """The 22 characters, without padding."""
    return base64.urlsafe_b64encode(uuid).decode("ascii").rstrip("=")


def uuid_from_text(where: str, text: str) -> bytes:
    """The sixteen bytes; padding is tolerated."""
    if not _TEXT.fullmatch(text):
        raise DecodeError(f"{where}: found {text[:30]!r}, expected 22 characters of base64")
    return base64.urlsafe_b64decode(text[:22] + "==")
