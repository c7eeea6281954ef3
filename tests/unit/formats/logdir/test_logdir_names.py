"""Names in a log directory."""

import pytest

from barnabas.formats.logdir.names import (
    LOG_SUFFIX,
    deleted_directory_name,
    future_directory_name,
    log_directory_name,
    parse_log_directory_name,
    parse_segment_file_name,
    parse_snapshot_file_name,
    segment_file_name,
    stray_directory_name,
)
from barnabas.model.ids import TopicPartition

UNIQUE = "c932e879e5e6447aa10d63bcd2d6f44f"


def test_segment_files_have_twenty_digits_and_sort_as_their_offsets() -> None:
    names = [segment_file_name(offset, LOG_SUFFIX) for offset in (0, 9, 10, 2**63 - 1)]
    assert names[0] == "00000000000000000000.log"
    assert names == sorted(names)
    for name in names:
        parsed = parse_segment_file_name(name)
        assert parsed is not None
        assert segment_file_name(*parsed) == name


@pytest.mark.parametrize(
    "name",
    [
        "0.log",
        "00000000000000000000.log.deleted",
        "00000000000000000000.txt",
        "leader-epoch",
        "a.log",
    ],
)
def test_other_files_are_no_segments(name: str) -> None:
    assert parse_segment_file_name(name) is None


def test_snapshots_are_known_by_their_offset() -> None:
    assert parse_snapshot_file_name("00000000000000000030.snapshot") == 30
    assert parse_snapshot_file_name("00000000000000000030.log") is None


@pytest.mark.parametrize("topic", ["a", "a-b", "a.b-c", "x-delete", "with_underscore", "-", "1-2"])
def test_a_log_is_found_again_by_its_name(topic: str) -> None:
    key = TopicPartition(topic, 12)
    found = parse_log_directory_name(log_directory_name(key))
    assert found == (key, "")
    found = parse_log_directory_name(deleted_directory_name(key, UNIQUE))
    assert found == (key, "-delete")
    found = parse_log_directory_name(stray_directory_name(key, UNIQUE))
    assert found == (key, "-stray")
    found = parse_log_directory_name(future_directory_name(key, UNIQUE))
    assert found == (key, "-future")


def test_the_name_of_a_deleted_log_is_cut_to_what_a_file_system_takes() -> None:
    key = TopicPartition("t" * 249, 1234)
    for name in (deleted_directory_name(key, UNIQUE), stray_directory_name(key, UNIQUE)):
        assert len(name) == 255
        found = parse_log_directory_name(name)
        assert found is not None
        assert found.topic_partition.partition == 1234
        assert key.topic.startswith(found.topic_partition.topic)


@pytest.mark.parametrize(
    "name",
    [
        "lost+found",
        "notes",
        "topic-",
        "-1",
        "topic-x",
        "topic-delete",
        "topic-0-delete",
        "topic-1234567890123",
        "topic-\u0663",
    ],
)
def test_other_directories_are_no_logs(name: str) -> None:
    assert parse_log_directory_name(name) is None
