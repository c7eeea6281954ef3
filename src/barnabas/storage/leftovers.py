"""What an interrupted broker leaves in a log's directory: finished or removed before loading.

A cleaner writes `.cleaned` files, renames them to `.swap` when all are complete, and then puts
them in the place of the segments they stand for. `.cleaned` files were never complete; `.swap`
files were, unless a `.cleaned` one at or below their offset shows that the set was not.
"""

from barnabas.formats.logdir.names import (
    CLEANED_FILE_SUFFIX,
    DELETED_FILE_SUFFIX,
    LOG_SUFFIX,
    PRODUCER_SNAPSHOT_SUFFIX,
    SWAP_FILE_SUFFIX,
    TEMPORARY_FILE_SUFFIX,
    parse_segment_file_name,
)
from barnabas.storage.batch_walk import header_at
from barnabas.storage.disk import Disk


def clear_leftovers(disk: Disk, directory: str, names: list[str]) -> bool:
    """Finish what can be finished, remove the rest; whether any name changed."""
    swaps: list[str] = []
    first_cleaned: int | None = None
    doomed: list[str] = []
    for name in names:
        if name.endswith((DELETED_FILE_SUFFIX, TEMPORARY_FILE_SUFFIX)):
            doomed.append(name)
        elif name.endswith(CLEANED_FILE_SUFFIX):
            doomed.append(name)
            file = parse_segment_file_name(name.removesuffix(CLEANED_FILE_SUFFIX))
            if file is not None and (first_cleaned is None or file.base_offset < first_cleaned):
                first_cleaned = file.base_offset
        elif name.endswith(SWAP_FILE_SUFFIX):
            swaps.append(name)
    valid: list[str] = []
    for name in swaps:
        file = parse_segment_file_name(name.removesuffix(SWAP_FILE_SUFFIX))
        if file is None or (first_cleaned is not None and file.base_offset >= first_cleaned):
            doomed.append(name)
        else:
            valid.append(name)
    # The unfit swap files go while the .cleaned ones still tell that they are unfit.
    for name in sorted(doomed, key=lambda name: name.endswith(CLEANED_FILE_SUFFIX)):
        disk.remove_file(f"{directory}/{name}")
    if valid:
        _complete_swap(disk, directory, names, valid)
    return bool(doomed or valid)


def _complete_swap(disk: Disk, directory: str, names: list[str], swaps: list[str]) -> None:
    """Remove the segments that the swap files stand for, and give these their place."""
    first: int | None = None
    end = 0
    for name in swaps:
        file = parse_segment_file_name(name.removesuffix(SWAP_FILE_SUFFIX))
        if file is None or file.suffix != LOG_SUFFIX:
            continue
        if first is None or file.base_offset < first:
            first = file.base_offset
        end = max(end, _next_offset(disk, f"{directory}/{name}", file.base_offset))
    if first is not None:
        for name in names:
            file = parse_segment_file_name(name)
            if file is None or not first <= file.base_offset < end:
                continue
            if file.suffix != PRODUCER_SNAPSHOT_SUFFIX:
                disk.remove_file(f"{directory}/{name}")
    for name in sorted(swaps, key=_log_file_last):
        path = f"{directory}/{name}"
        disk.rename(path, path.removesuffix(SWAP_FILE_SUFFIX))
    disk.sync_directory(directory)


def _log_file_last(name: str) -> tuple[bool, str]:
    """Indexes first: a segment must not stand there with the indexes of another."""
    return name.endswith(LOG_SUFFIX + SWAP_FILE_SUFFIX), name


def _next_offset(disk: Disk, path: str, base_offset: int) -> int:
    """The offset after the last batch of a complete segment file."""
    file = disk.open(path)
    try:
        size_bytes = disk.size(file)
        position = 0
        end = base_offset
        while position < size_bytes:
            header = header_at(disk.read(file, position, 64), 0)
            if header is None:
                break
            end = header.next_offset
            position += header.size_bytes
        return end
    finally:
        disk.close(file)


def remove_orphan_indexes(disk: Disk, directory: str, names: list[str]) -> list[str]:
    """Remove index files without a log file; the names that are left."""
    logs: set[int] = set()
    for name in names:
        file = parse_segment_file_name(name)
        if file is not None and file.suffix == LOG_SUFFIX:
            logs.add(file.base_offset)
    left: list[str] = []
    for name in names:
        file = parse_segment_file_name(name)
        if (
            file is not None
            and file.suffix not in (LOG_SUFFIX, PRODUCER_SNAPSHOT_SUFFIX)
            and file.base_offset not in logs
        ):
            disk.remove_file(f"{directory}/{name}")
        else:
            left.append(name)
    return left
