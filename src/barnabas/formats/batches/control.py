"""Control records: the markers that end transactions, and others, which are only recognised."""

from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from barnabas.formats.batches.builder import BatchBuilder
from barnabas.formats.batches.header import NO_LEADER_EPOCH
from barnabas.formats.batches.reader import Record
from barnabas.model.errors import CorruptBatch

KEY: Final = Struct(">hh")
"""Version and type."""
END_MARKER_VALUE: Final = Struct(">hi")
"""Version and coordinator epoch."""
CURRENT_VERSION: Final = 0


class ControlType(IntEnum):
    """What a control record says; UNKNOWN is any number without a meaning to us."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class EndMarker(NamedTuple):
    """The end of a transaction in one partition."""

    is_commit: bool
    coordinator_epoch: int


def control_type_of(record: Record) -> ControlType:
    """The type in a control record's key; later versions of the key only add to it."""
    key = record.key
    if key is None or len(key) < KEY.size:
        raise CorruptBatch("the key of a control record is too short")
    version, number = KEY.unpack_from(key)
    if version < 0:
        raise CorruptBatch(f"version {version} of a control record's key")
    if ControlType.ABORT <= number <= ControlType.KRAFT_VOTERS:
        return ControlType(number)
    return ControlType.UNKNOWN


def read_end_marker(record: Record) -> EndMarker | None:
    """The end of a transaction; None for a control record of another type."""
    control_type = control_type_of(record)
    if control_type not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    if record.value is None or len(record.value) < END_MARKER_VALUE.size:
        raise CorruptBatch("the value of an end marker is too short")
    version, coordinator_epoch = END_MARKER_VALUE.unpack_from(record.value)
    if version < 0:
        raise CorruptBatch(f"version {version} of an end marker")
    return EndMarker(control_type is ControlType.COMMIT, coordinator_epoch)


def build_end_marker(
    marker: EndMarker,
    *,
    producer_id: int,
    producer_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> bytes:
    """The batch of one control record that a transaction coordinator has written everywhere."""
    control_type = ControlType.COMMIT if marker.is_commit else ControlType.ABORT
    builder = BatchBuilder(base_offset=base_offset)
    builder.append(
        KEY.pack(CURRENT_VERSION, control_type),
        END_MARKER_VALUE.pack(CURRENT_VERSION, marker.coordinator_epoch),
        timestamp,
    )
    return builder.build(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
        leader_epoch=leader_epoch,
    )
