"""Names of files and directories inside a log directory: built, and taken apart."""

import re
from typing import Final, NamedTuple

from barnabas.model.ids import TopicPartition

LOG_SUFFIX: Final = ".log"
OFFSET_INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TRANSACTION_INDEX_SUFFIX: Final = ".txnindex"
PRODUCER_SNAPSHOT_SUFFIX: Final = ".snapshot"

DELETED_FILE_SUFFIX: Final = ".deleted"
CLEANED_FILE_SUFFIX: Final = ".cleaned"
SWAP_FILE_SUFFIX: Final = ".swap"
TEMPORARY_FILE_SUFFIX: Final = ".tmp"

DELETE_DIRECTORY_SUFFIX: Final = "-delete"
FUTURE_DIRECTORY_SUFFIX: Final = "-future"
STRAY_DIRECTORY_SUFFIX: Final = "-stray"

LOCK_FILE: Final = ".lock"
CLEAN_SHUTDOWN_FILE: Final = ".kafka_cleanshutdown"
META_PROPERTIES_FILE: Final = "meta.properties"
RECOVERY_POINT_FILE: Final = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_FILE: Final = "log-start-offset-checkpoint"
HIGH_WATERMARK_FILE: Final = "replication-offset-checkpoint"
CLEANER_OFFSET_FILE: Final = "cleaner-offset-checkpoint"
LEADER_EPOCH_FILE: Final = "leader-epoch-checkpoint"
PARTITION_METADATA_FILE: Final = "partition.metadata"

CLUSTER_METADATA_TOPIC: Final = "__cluster_metadata"
"""The log of a KRaft quorum; its directory marks a place that is not ours."""
REMOTE_LOG_INDEX_CACHE: Final = "remote-log-index-cache"
"""Copies of indexes that a broker with tiered storage keeps; passed over."""

NAME_LENGTH_MAX: Final = 255

_FILE = re.compile(r"(\d{20})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)\Z")
_SNAPSHOT = re.compile(r"(\d+)\.snapshot\Z")
_MARKED_DIRECTORY = re.compile(r"(\S+-\S+)\.[^\s.]+(-delete|-future|-stray)\Z")


class SegmentFile(NamedTuple):
    """A file of a segment: the offset in its name and what it is."""

    base_offset: int
    suffix: str


class LogDirectoryName(NamedTuple):
    """Whose log a directory holds; `mark` is empty for a log in use."""

    topic_partition: TopicPartition
    mark: str


def segment_file_name(base_offset: int, suffix: str) -> str:
    """Twenty digits, so that names sort as offsets do."""
    return f"{base_offset:020d}{suffix}"


def parse_segment_file_name(name: str) -> SegmentFile | None:
    """None for a file that belongs to no segment."""
    match = _FILE.match(name)
    if match is None:
        return None
    return SegmentFile(int(match[1]), match[2])


def parse_snapshot_file_name(name: str) -> int | None:
    """The offset up to which the snapshot tells, or None for another file."""
    match = _SNAPSHOT.match(name)
    return None if match is None else int(match[1])


def log_directory_name(topic_partition: TopicPartition) -> str:
    return f"{topic_partition.topic}-{topic_partition.partition}"


def deleted_directory_name(topic_partition: TopicPartition, unique: str) -> str:
    """The name of a log that waits for removal; `unique` is 32 hexadecimal digits."""
    return _marked_name(topic_partition, unique, DELETE_DIRECTORY_SUFFIX)


def stray_directory_name(topic_partition: TopicPartition, unique: str) -> str:
    """The name of a log that was moved aside because nobody knows its topic."""
    return _marked_name(topic_partition, unique, STRAY_DIRECTORY_SUFFIX)


def future_directory_name(topic_partition: TopicPartition, unique: str) -> str:
    """The name of a log that is being copied here; unlike the other two it is never cut."""
    return f"{log_directory_name(topic_partition)}.{unique}{FUTURE_DIRECTORY_SUFFIX}"


def _marked_name(topic_partition: TopicPartition, unique: str, mark: str) -> str:
    """The topic's part is cut so that the whole stays a legal file name."""
    tail = f"-{topic_partition.partition}.{unique}{mark}"
    return topic_partition.topic[: NAME_LENGTH_MAX - len(tail)] + tail


def parse_log_directory_name(name: str) -> LogDirectoryName | None:
    """None when the name is not that of a log; a cut topic comes back cut."""
    mark = ""
    whose = name
    if name.endswith((DELETE_DIRECTORY_SUFFIX, FUTURE_DIRECTORY_SUFFIX, STRAY_DIRECTORY_SUFFIX)):
        match = _MARKED_DIRECTORY.match(name)
        if match is None:
            return None
        whose, mark = match[1], match[2]
    topic, dash, partition = whose.rpartition("-")
    if not dash or not topic or not partition.isascii() or not partition.isdigit():
        return None
    if len(partition) > 10:
        return None
    return LogDirectoryName(TopicPartition(topic, int(partition)), mark)
