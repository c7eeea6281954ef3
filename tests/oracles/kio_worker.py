"""A process that decodes and encodes with one version of kio; two versions cannot share one.

Reads lines of JSON, {"key", "version", "side", "hex"}, and answers each with the decoded message,
the bytes that encoding it again gives, and how many bytes were read, or with the error.
"""

import dataclasses
import datetime
import enum
import io
import json
import sys
import uuid
from functools import cache
from typing import Any

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MILLISECOND = datetime.timedelta(milliseconds=1)


@cache
def entity(key: int, version: int, side: str) -> Any:
    from kio.index import load_request_schema, load_response_schema

    load = load_request_schema if side == "request" else load_response_schema
    return load(key, version)


def answer(ask: dict[str, Any]) -> dict[str, Any]:
    from kio.serial import entity_reader, entity_writer

    data = bytes.fromhex(ask["hex"])
    kind = entity(ask["key"], ask["version"], ask["side"])
    value, size = entity_reader(kind)(data, 0)
    buffer = io.BytesIO()
    entity_writer(kind)(buffer, value)
    return {"plain": to_json(value), "hex": buffer.getvalue().hex(), "size": size}


def to_json(value: Any) -> Any:
    """The message with times in milliseconds, error codes as numbers and bytes as hex."""
    if dataclasses.is_dataclass(value):
        return {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, tuple | list):
        return [to_json(item) for item in value]
    if isinstance(value, datetime.timedelta):
        return round(value / MILLISECOND)
    if isinstance(value, datetime.datetime):
        return round((value - EPOCH) / MILLISECOND)
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, uuid.UUID):
        return value.bytes.hex()
    if isinstance(value, bytes):
        return value.hex()
    return value


def main() -> None:
    for line in sys.stdin:
        try:
            told = answer(json.loads(line))
        except Exception as error:
            told = {"error": repr(error)}
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
