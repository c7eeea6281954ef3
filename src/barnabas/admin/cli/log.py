"""`barnabas log`: what is in the files of a log directory, offline."""

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import click

from barnabas.admin.cli.program import Printer, output_options, run
from barnabas.admin.cli.records import to_text, to_values
from barnabas.formats.batches.compression import CompressionCodec
from barnabas.formats.batches.header import HEADER_SIZE, BatchHeader
from barnabas.formats.batches.old_magic import read_message_set
from barnabas.formats.batches.reader import Record, read_batch
from barnabas.formats.logdir import index_entries
from barnabas.formats.logdir.checkpoints import decode_epoch_checkpoint, decode_offset_checkpoint
from barnabas.formats.logdir.names import parse_segment_file_name, parse_snapshot_file_name
from barnabas.formats.logdir.producer_snapshot import decode_producer_snapshot
from barnabas.formats.logdir.transaction_index import decode_aborted_transactions
from barnabas.model.errors import BarnabasError, CorruptBatch
from barnabas.node.output import EXIT_USAGE, ProgramError
from barnabas.node.real_disk import RealDisk
from barnabas.storage.batch_walk import header_at, is_intact
from barnabas.storage.disk import FileId

CURRENT_MAGIC = 2
CODECS = {int(codec): codec.name.lower() for codec in CompressionCodec}
BATCH_BYTES_MAX = 256 * 1024 * 1024
CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
)
EPOCHS = "leader-epoch-checkpoint"


class _Found(NamedTuple):
    """A batch in a file; without data where its bytes end too early."""

    position: int
    header: BatchHeader
    data: bytes


@click.group(help="Files of a log, read without a broker.")
def log() -> None:
    """Holds the verbs."""


def main(arguments: Sequence[str]) -> int:
    """Run the program; its exit code."""
    return run(log, "log", arguments)


@log.command(help="Show batches, records, indexes, checkpoints, producer snapshots.")
@click.argument("paths", metavar="FILE|DIRECTORY...", nargs=-1, required=True)
@click.option("--records", "with_records", is_flag=True, help="Also the records in the batches.")
@output_options
def dump(paths: tuple[str, ...], with_records: bool, output: str) -> None:
    printer = Printer(output)
    is_damaged = False
    for path in paths:
        for file in _files_of(path):
            if not printer.is_json and (len(paths) > 1 or file != path):
                printer.tell(f"-- {file}", {})
            try:
                is_damaged |= not _dump_file(printer, file, with_records)
            except BarnabasError as problem:
                raise ProgramError(
                    f"{file} cannot be read", cause=str(problem), see="bad-log-file"
                ) from problem
    if is_damaged:
        raise ProgramError(
            "a log is damaged",
            cause="batches marked damaged above, and what follows them in their file",
            fix="start the broker: recovery cuts the log there; replicas have the rest",
            see="bad-log-file",
        )


def _files_of(path: str) -> list[str]:
    if not os.path.exists(path):
        raise ProgramError(f"there is no {path}", see="bad-log-file", exit_code=EXIT_USAGE)
    if not os.path.isdir(path):
        return [path]
    names = sorted(os.listdir(path))
    return [os.path.join(path, name) for name in names if _is_known(name)]


def _is_known(name: str) -> bool:
    is_segment = parse_segment_file_name(name) is not None
    is_snapshot = parse_snapshot_file_name(name) is not None
    return is_segment or is_snapshot or name == EPOCHS or name in CHECKPOINTS


def _dump_file(printer: Printer, path: str, with_records: bool) -> bool:
    """Show a file by what its name says it is; whether it is undamaged."""
    disk = RealDisk(lambda job: None)
    name = os.path.basename(path)
    segment = parse_segment_file_name(name)
    if segment is not None and segment.suffix == ".log":
        return _dump_segment(printer, disk, path, with_records)
    columns, rows = _read_small_file(name, disk.read_file(path))
    printer.table(columns, rows)
    return True


def _read_small_file(name: str, data: bytes) -> tuple[Sequence[str], Sequence[Sequence[object]]]:
    segment = parse_segment_file_name(name)
    if segment is not None and segment.suffix == ".index":
        size = index_entries.OFFSET_ENTRY_SIZE
        base = segment.base_offset
        places = range(0, len(data) - size + 1, size)
        entries = [index_entries.decode_offset_entry(base, data, at) for at in places]
        return ("offset", "position"), [e for i, e in enumerate(entries) if i == 0 or e.position]
    if segment is not None and segment.suffix == ".timeindex":
        size = index_entries.TIME_ENTRY_SIZE
        base = segment.base_offset
        places = range(0, len(data) - size + 1, size)
        times = [index_entries.decode_time_entry(base, data, at) for at in places]
        return ("timestamp", "offset"), [e for e in times if e.timestamp > 0]
    if segment is not None and segment.suffix == ".txnindex":
        aborted = decode_aborted_transactions(data)
        return (aborted[0]._fields if aborted else ("producer_id",)), aborted
    if parse_snapshot_file_name(name) is not None:
        producers = decode_producer_snapshot(data)
        return (producers[0]._fields if producers else ("producer_id",)), producers
    if name == EPOCHS:
        return ("leader_epoch", "start_offset"), decode_epoch_checkpoint(data)
    if name in CHECKPOINTS:
        offsets = decode_offset_checkpoint(data)
        return ("partition", "offset"), [(str(place), at) for place, at in sorted(offsets.items())]
    raise ProgramError(
        f"{name} is no file that is known here",
        cause="known are segments, indexes, checkpoints and producer snapshots, by their names",
        see="bad-log-file",
    )


def _dump_segment(printer: Printer, disk: RealDisk, path: str, with_records: bool) -> bool:
    file = disk.open(path)
    is_intact_so_far = True
    for found in _batches(disk, file):
        is_good = bool(found.data) and is_intact(found.data, found.header, 0)
        is_intact_so_far = is_intact_so_far and is_good
        _show_batch(printer, found, is_good)
        if with_records and is_good:
            for record in _records_of(found):
                text = f"  {record.offset}  {_time(record.timestamp)}  "
                text += f"{to_text(record.key)}  {to_text(record.value)}"
                printer.tell(text, {"type": "record", **to_values(record)})
    disk.close(file)
    return is_intact_so_far


def _batches(disk: RealDisk, file: FileId) -> Iterator[_Found]:
    """Batch by batch, so that a segment of any size takes the memory of one batch."""
    position, end = 0, disk.size(file)
    while position < end:
        try:
            header = header_at(disk.read(file, position, HEADER_SIZE), 0)
        except CorruptBatch:
            header = None
        if header is None:
            rest = disk.read(file, position, 4096)
            if rest.strip(b"\0"):
                raise CorruptBatch(f"no batch begins at position {position}")
            return
        is_whole = header.size_bytes <= min(end - position, BATCH_BYTES_MAX)
        data = disk.read(file, position, header.size_bytes) if is_whole else b""
        yield _Found(position, header, data)
        if not is_whole:
            return
        position += header.size_bytes


def _records_of(found: _Found) -> list[Record]:
    if found.header.magic < CURRENT_MAGIC:
        return read_message_set(found.data, 0, len(found.data))
    return read_batch(found.data, 0, len(found.data))


def _show_batch(printer: Printer, found: _Found, is_good: bool) -> None:
    header = found.header
    codec = CODECS.get(header.compression_codec, f"codec {header.compression_codec}")
    kind = "control" if header.is_control else "transactional" if header.is_transactional else ""
    text = (
        f"{header.base_offset}-{header.last_offset}  position {found.position}  "
        f"{header.record_count} records  {header.size_bytes} bytes  {codec}  "
        f"epoch {header.partition_leader_epoch}  {_time(header.max_timestamp)}"
    )
    if header.producer_id >= 0:
        text += f"  producer {header.producer_id}/{header.producer_epoch}"
        text += f" sequence {header.base_sequence}"
    text += f"  {kind}" if kind else ""
    printer.tell(
        text + ("" if is_good else "  DAMAGED"),
        {
            "type": "batch",
            "base_offset": header.base_offset,
            "last_offset": header.last_offset,
            "records": header.record_count,
            "position": found.position,
            "bytes": header.size_bytes,
            "magic": header.magic,
            "compression": codec,
            "leader_epoch": header.partition_leader_epoch,
            "max_timestamp": header.max_timestamp,
            "producer_id": header.producer_id,
            "producer_epoch": header.producer_epoch,
            "base_sequence": header.base_sequence,
            "transactional": header.is_transactional,
            "control": header.is_control,
            "intact": is_good,
        },
    )


def _time(timestamp: int) -> str:
    if timestamp < 0:
        return "no time"
    try:
        moment = datetime.fromtimestamp(timestamp / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"time {timestamp}"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
