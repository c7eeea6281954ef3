"""meta.properties: which broker of which cluster a log directory belongs to."""

from typing import Final, NamedTuple

from barnabas.formats.properties import read_properties
from barnabas.model.errors import DecodeError

ZOOKEEPER_VERSION: Final = 0
KRAFT_VERSION: Final = 1


class MetaProperties(NamedTuple):
    """Version 0 is a broker of ZooKeeper mode; version 1 is one of KRaft, not ours to open."""

    version: int
    cluster_id: str | None
    broker_id: int | None
    """`broker.id` of version 0, `node.id` of version 1."""
    directory_id: str | None = None


def encode_meta_properties(properties: MetaProperties) -> bytes:
    """As Java's Properties reads it; the comment that Kafka writes holds only a date."""
    lines = ["#"]
    if properties.broker_id is not None:
        lines.append(f"broker.id={properties.broker_id}")
    lines.append(f"version={properties.version}")
    if properties.directory_id is not None:
        lines.append(f"directory.id={properties.directory_id}")
    if properties.cluster_id is not None:
        lines.append(f"cluster.id={properties.cluster_id}")
    return ("\n".join(lines) + "\n").encode()


def decode_meta_properties(data: bytes, path: str) -> MetaProperties:
    """`DecodeError` when version or broker id is no number, or the version is unknown."""
    texts = {setting.name: setting.text for setting in read_properties(data, path)}
    version = _number(texts, "version", path)
    if version is None:
        version = ZOOKEEPER_VERSION
    if version not in (ZOOKEEPER_VERSION, KRAFT_VERSION):
        raise DecodeError(f"{path}: version {version} is unknown")
    key = "broker.id" if version == ZOOKEEPER_VERSION else "node.id"
    return MetaProperties(
        version, texts.get("cluster.id"), _number(texts, key, path), texts.get("directory.id")
    )


def _number(texts: dict[str, str], key: str, path: str) -> int | None:
    text = texts.get(key)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError as error:
        raise DecodeError(f"{path}: {key}={text} is no number") from error
