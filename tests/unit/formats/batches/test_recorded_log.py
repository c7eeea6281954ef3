"""Every batch of a real broker's log directory, read equal to what Kafka's own dump shows."""

import functools
import io
import json
import re
import tarfile
from pathlib import Path

import pytest

from barnabas.formats.batches.builder import BatchBuilder
from barnabas.formats.batches.compression import CompressionCodec
from barnabas.formats.batches.control import ControlType, control_type_of, read_end_marker
from barnabas.formats.batches.header import (
    LOG_APPEND_TIME,
    BatchHeader,
    has_valid_crc,
)
from barnabas.formats.batches.reader import Record, batches_in, plain_records, read_records
from barnabas.formats.batches.record_checks import check_records

VECTORS = Path(__file__).parents[3] / "vectors"


@functools.cache
def _dumps() -> dict[str, list[str]]:
    return json.loads((VECTORS / "logdir-3.9.json").read_text())["dump"]


@functools.cache
def _files() -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    with tarfile.open(VECTORS / "logdir-3.9.tar.gz") as archive:
        for member in archive.getmembers():
            content = archive.extractfile(member)
            if content is not None:
                files[member.name.removeprefix("logdir-3.9/")] = content.read()
    return files


LOGS = sorted(name for name in _dumps() if name.endswith(".log"))


def _batch_line(position: int, header: BatchHeader, is_valid: bool) -> str:
    horizon = f"[{header.base_timestamp}]" if header.has_delete_horizon else ".empty"
    kind = "LogAppendTime" if header.timestamp_type == LOG_APPEND_TIME else "CreateTime"
    return (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} "
        f"count: {header.record_count} baseSequence: {header.base_sequence} "
        f"lastSequence: {header.last_sequence} producerId: {header.producer_id} "
        f"producerEpoch: {header.producer_epoch} "
        f"partitionLeaderEpoch: {header.partition_leader_epoch} "
        f"isTransactional: {str(header.is_transactional).lower()} "
        f"isControl: {str(header.is_control).lower()} "
        f"deleteHorizonMs: OptionalLong{horizon} position: {position} "
        f"{kind}: {header.max_timestamp} size: {header.size_bytes} magic: {header.magic} "
        f"compresscodec: {CompressionCodec(header.compression_codec).name.lower()} "
        f"crc: {header.crc} isvalid: {str(is_valid).lower()}"
    )


def _record_line(record: Record, header: BatchHeader) -> str:
    kind = "LogAppendTime" if header.timestamp_type == LOG_APPEND_TIME else "CreateTime"
    names = ",".join(key for key, _ in record.headers)
    line = (
        f"| offset: {record.offset} {kind}: {record.timestamp} "
        f"keySize: {-1 if record.key is None else len(record.key)} "
        f"valueSize: {-1 if record.value is None else len(record.value)} "
        f"sequence: {record.sequence} headerKeys: [{names}]"
    )
    if header.is_control:
        marker = read_end_marker(record)
        assert marker is not None
        name = ControlType(control_type_of(record)).name
        return f"{line} endTxnMarker: {name} coordinatorEpoch: {marker.coordinator_epoch}"
    if record.key is not None:
        line += f" key: {record.key.decode(errors='replace')}"
    if record.value is not None:
        line += f" payload: {record.value.decode(errors='replace')}"
    return line


@pytest.mark.parametrize("name", LOGS)
def test_the_log_is_what_its_dump_says(name: str) -> None:
    data = _files()[name]
    shown = [f"Log starting offset: {int(Path(name).stem)}"]
    for position, header in batches_in(data, 0, len(data)):
        shown.append(_batch_line(position, header, has_valid_crc(data, header, position)))
        shown += [_record_line(record, header) for record in read_records(data, header, position)]
    expected = _dumps()[name]
    if name.startswith("__"):
        # Kafka decoded keys and values of its own topics: compare what stands before them.
        decoded = re.compile(r" (key|payload): .*", re.DOTALL)
        shown, expected = ([decoded.sub("", line) for line in lines] for lines in (shown, expected))
    assert shown == expected


@pytest.mark.parametrize("name", LOGS)
def test_every_batch_is_built_again_to_the_same_records_and_bytes(name: str) -> None:
    data = _files()[name]
    for position, header in batches_in(data, 0, len(data)):
        is_appended = header.timestamp_type == LOG_APPEND_TIME
        builder = BatchBuilder(
            codec=CompressionCodec(header.compression_codec),
            base_offset=header.base_offset,
            delete_horizon_ms=header.base_timestamp if header.has_delete_horizon else None,
            base_timestamp=header.base_timestamp,
            log_append_time_ms=header.max_timestamp if is_appended else None,
        )
        records = read_records(data, header, position)
        for record in records:
            builder.append(
                record.key, record.value, record.timestamp, record.headers, record.offset
            )
        batch = builder.build(
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            is_transactional=header.is_transactional,
            is_control=header.is_control,
            leader_epoch=header.partition_leader_epoch,
            last_offset=header.last_offset,
        )
        if header.compression_codec == CompressionCodec.NONE and not is_appended:
            assert batch == data[position : position + header.size_bytes]
        rebuilt = BatchHeader(batch, 0)
        assert read_records(batch, rebuilt, 0) == records
        plain, start, end = plain_records(data, header, position)
        summary = check_records(
            plain, start, end, header.record_count, header.base_timestamp, False, 0, 0
        )
        if not is_appended:
            assert summary.max_timestamp == header.max_timestamp


def test_all_that_a_log_can_hold_is_in_the_recording() -> None:
    headers = [
        header
        for name in LOGS
        for _, header in batches_in(io.BytesIO(_files()[name]).read(), 0, len(_files()[name]))
    ]
    assert {header.compression_codec for header in headers} == set(CompressionCodec)
    assert {header.timestamp_type for header in headers} == {0, 1}
    assert any(header.has_delete_horizon for header in headers)
    assert any(header.is_control for header in headers)
    assert {header.partition_leader_epoch for header in headers} >= {0, 1, 2}
