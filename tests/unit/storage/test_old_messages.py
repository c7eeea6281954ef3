"""Segments with messages of the formats before version 2, as very old brokers left them."""

import pytest

from barnabas.formats.batches.compression import CompressionCodec
from barnabas.formats.batches.old_magic import build_message_set, read_message_set
from barnabas.formats.batches.reader import Record
from barnabas.storage.batch_walk import header_at, is_intact
from barnabas.storage.offset_queries import offset_for_time, youngest_record
from tests.worlds.log_world import LogWorld, bytes_of, produce

DIRECTORY = "/logs/topic-0"


def old_set(magic: int, first: int, count: int) -> bytes:
    records = [
        Record(first + number, 1000 + first + number if magic else -1, b"key", b"value %d" % number)
        for number in range(count)
    ]
    return build_message_set(records, magic=magic)


def world_with(data: bytes) -> LogWorld:
    world = LogWorld()
    world.memory.place(f"{DIRECTORY}/00000000000000000000.log", data)
    world.start()
    return world


@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages_are_recovered_and_read(magic: int) -> None:
    data = old_set(magic, 0, 40)
    world = world_with(data)
    log = world.log()
    assert log.log_end_offset == 40
    assert not world.recovered[0].complaint
    assert not log.leader_epochs.entries()
    for offset in (0, 1, 17, 39):
        read = bytes_of(log.read(offset, 10_000, 40, True))
        assert read_message_set(read, 0, len(read))[0].offset == offset
    assert produce(log, b"new", leader_epoch=3).base_offset == 40
    world.stop()
    world.start()
    assert not world.recovered
    assert world.log().log_end_offset == 41


def test_times_of_old_messages_are_known() -> None:
    log = world_with(old_set(1, 0, 40)).log()
    found = offset_for_time(log, 1017)
    assert found == (1017, 17, -1)
    assert youngest_record(log) == (1039, 39, -1)
    assert offset_for_time(world_with(old_set(0, 0, 3)).log(), 5000) is None


@pytest.mark.parametrize("magic", [0, 1])
def test_a_damaged_old_message_is_cut_off(magic: int) -> None:
    data = bytearray(old_set(magic, 0, 10))
    data[-3] ^= 1
    world = world_with(bytes(data))
    assert world.log().log_end_offset == 9
    assert world.recovered[0].complaint


def test_a_follower_of_an_old_leader_forgets_its_epochs() -> None:
    world = LogWorld()
    world.start()
    log = world.log()
    produce(log, b"new", leader_epoch=3)
    data = old_set(1, 1, 5)
    assert log.append_as_follower(data, 0, len(data), 0) == 6
    assert log.leader_epochs.entries() == ()


def test_a_compressed_set_is_known_by_its_last_offset() -> None:
    records = [Record(number, 1000 + number, None, b"value") for number in range(5)]
    data = build_message_set(records, magic=1, codec=CompressionCodec.GZIP)
    header = header_at(data, 0)
    assert header is not None
    assert (header.last_offset, header.size_bytes) == (4, len(data))
    assert is_intact(data, header, 0)
