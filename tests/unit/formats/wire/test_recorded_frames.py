"""Frames that real brokers exchanged decode to what the recorder wrote beside them, and back."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from barnabas.formats.codec.schema import Array, Field, Kind, Struct
from barnabas.formats.wire import catalog
from barnabas.formats.wire.framing import request_frame, response_parts
from barnabas.formats.wire.headers import decode_request_header, decode_response_header
from barnabas.model.error_codes import ErrorCode
from tests.schemas import decode, message_of, to_plain

VECTORS = Path(__file__).parents[3] / "vectors" / "wire"
KEYS = {api.module: api.key for api in catalog.APIS.values()}


def recorded(module: str) -> list[dict[str, Any]]:
    lines = (VECTORS / f"{module}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("module", sorted(path.stem for path in VECTORS.glob("*.jsonl")))
def test_recorded_frames_decode_and_encode(module: str) -> None:
    key = KEYS[module]
    rows = recorded(module)
    assert {row["side"] for row in rows} == {"request", "response"}
    for row in rows:
        frame = bytes.fromhex(row["raw"])
        check = check_request if row["side"] == "request" else check_response
        check(key, row["version"], frame, row["message"])


def check_request(key: int, version: int, frame: bytes, message: dict[str, Any]) -> None:
    *named, correlation_id, client_id, start = decode_request_header(frame, 0, len(frame))
    assert named == [key, version]
    value = decode(key, version, "request", frame[start:])
    assert as_recorded(message_of(key, "request"), version, value) == message
    again = request_frame(key, version, correlation_id, client_id, value)
    assert again == len(frame).to_bytes(4, "big") + frame


def check_response(key: int, version: int, frame: bytes, message: dict[str, Any]) -> None:
    correlation_id, start = decode_response_header(frame, 0, len(frame), key, version)
    value = decode(key, version, "response", frame[start:])
    assert as_recorded(message_of(key, "response"), version, value) == message
    (again,) = response_parts(key, version, correlation_id, value)
    assert again == len(frame).to_bytes(4, "big") + frame


def as_recorded(struct: Struct, version: int, value: Any) -> dict[str, Any]:
    """A message as the recorder wrote it: error codes by name, uuids in base 64, records in hex."""
    return name_plain(struct, version, to_plain(struct, version, value))


def name_plain(struct: Struct, version: int, plain: dict[str, Any]) -> dict[str, Any]:
    return {
        recorded_name(field.name): recorded_value(field, version, plain[field.name])
        for field in struct.fields
        if field.is_in(version)
    }


def recorded_name(name: str) -> str:
    return name if name == "timeout_ms" else name.removesuffix("_ms")


def recorded_value(field: Field, version: int, value: Any) -> Any:
    kind = field.type.element if isinstance(field.type, Array) else field.type
    if value is None:
        return None
    if isinstance(value, list):
        return [recorded_value(Field(field.name, kind), version, item) for item in value]
    if isinstance(kind, Struct):
        return name_plain(kind, version, value)
    if field.name.endswith("error_code"):
        return ErrorCode(value).name.lower()
    if kind.kind is Kind.UUID:
        return None if value == bytes(16) else url_safe(value)
    return value.hex() if isinstance(value, bytes) else value


def url_safe(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")
