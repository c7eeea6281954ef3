""".kafka_cleanshutdown: the mark of a clean stop; empty until Kafka 3.6, JSON since."""

import json
from typing import Final, cast

VERSION: Final = 0
UNKNOWN_BROKER_EPOCH: Final = -1


def encode_clean_shutdown(broker_epoch: int) -> bytes:
    return json.dumps(
        {"version": VERSION, "brokerEpoch": broker_epoch}, separators=(",", ":")
    ).encode()


def decode_clean_shutdown(data: bytes) -> int:
    """The broker epoch in it, -1 when it tells none; that the file exists is what counts."""
    try:
        content: object = json.loads(data)
    except ValueError:
        return UNKNOWN_BROKER_EPOCH
    if not isinstance(content, dict):
        return UNKNOWN_BROKER_EPOCH
    epoch = cast(dict[str, object], content).get("brokerEpoch")
    if isinstance(epoch, bool) or not isinstance(epoch, int):
        return UNKNOWN_BROKER_EPOCH
    return epoch
