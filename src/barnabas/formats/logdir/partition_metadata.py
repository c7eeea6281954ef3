"""partition.metadata: the topic id that a log belongs to."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from typing import Final

from barnabas.model.errors import DecodeError
from barnabas.model.ids import NO_TOPIC_ID, TopicId

VERSION: Final = 0
ID_LENGTH: Final = 16


def topic_id_to_text(topic_id: TopicId) -> str:
    """22 letters of base64 for file names and URLs, without padding."""
    return urlsafe_b64encode(topic_id).rstrip(b"=").decode()


def topic_id_from_text(text: str) -> TopicId:
    try:
        value = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (Base64Error, ValueError) as error:
        raise DecodeError(f"{text!r} is no topic id") from error
    if len(value) != ID_LENGTH:
        raise DecodeError(f"{text!r} is no topic id")
    return TopicId(value)


def encode_partition_metadata(topic_id: TopicId) -> bytes:
    return f"version: {VERSION}\ntopic_id: {topic_id_to_text(topic_id)}".encode()


def decode_partition_metadata(data: bytes) -> TopicId:
    """`DecodeError` for another version, a missing line or an id of zeroes."""
    fields: dict[str, str] = {}
    for line in data.decode("utf-8", "replace").splitlines():
        name, colon, value = line.partition(":")
        if not colon:
            raise DecodeError(f"malformed line in partition.metadata: {line!r}")
        fields[name.strip()] = value.strip()
    if fields.get("version") != str(VERSION):
        raise DecodeError(f"partition.metadata of version {fields.get('version')}")
    if "topic_id" not in fields:
        raise DecodeError("partition.metadata without a topic id")
    topic_id = topic_id_from_text(fields["topic_id"])
    if topic_id == NO_TOPIC_ID:
        raise DecodeError("partition.metadata with an id of zeroes")
    return topic_id
