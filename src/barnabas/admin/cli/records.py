"""Records as people and programs see them: a line each."""

import base64

from barnabas.formats.batches.reader import Record


def to_values(record: Record) -> dict[str, object]:
    """The record for JSON; bytes that are no text are given in base64 under another name."""
    values: dict[str, object] = {"offset": record.offset, "timestamp": record.timestamp}
    for name, data in (("key", record.key), ("value", record.value)):
        _put(values, name, data)
    if record.headers:
        headers: list[dict[str, object]] = []
        for header in record.headers:
            entry: dict[str, object] = {"key": header.key}
            _put(entry, "value", header.value)
            headers.append(entry)
        values["headers"] = headers
    return values


def _put(values: dict[str, object], name: str, data: bytes | None) -> None:
    try:
        values[name] = None if data is None else data.decode("utf-8")
    except UnicodeDecodeError:
        values[f"{name}_base64"] = base64.b64encode(data or b"").decode("ascii")


def to_text(data: bytes | None) -> str:
    """Bytes for a terminal: what is no text, or would move the cursor, is shown by its number."""
    if data is None:
        return "(null)"
    text = data.decode("utf-8", "backslashreplace")
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )
