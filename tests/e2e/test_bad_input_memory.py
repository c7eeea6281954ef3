"""What bad input may cost in memory and time, measured on the broker's process."""

import contextlib
import functools
import itertools
import struct
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import cramjam
import pytest

from tests.e2e import raw_answers, raw_batches, raw_requests
from tests.e2e.broker_process import BrokerProcess
from tests.e2e.process_figures import cpu_seconds, forget_peak, peak_bytes, resident_bytes
from tests.e2e.raw_batches import Record, batch, record_bytes
from tests.e2e.raw_requests import Place
from tests.e2e.raw_wire import Connection, Frame, to_uvarint, with_length
from tests.e2e.subjects import Subject

MIB = 1024 * 1024
MESSAGE_TOO_LARGE = 10
INVALID_RECORD = 87
INVALID_TIMESTAMP = 32


class Measured:
    """A broker and what it held when it was last asked."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        assert subject.process is not None
        self.pid = subject.process.pid
        for _ in range(50):
            subject.check_good_requests()
        self.before = resident_bytes(self.pid)
        self.cpu_before = cpu_seconds(self.pid)
        forget_peak(self.pid)

    def grown(self) -> int:
        """How much more it holds than at first, once it has dealt with what was sent."""
        self.subject.check_good_requests()
        return resident_bytes(self.pid) - self.before

    def cpu(self) -> float:
        """Processor seconds since the start of the measurement."""
        return cpu_seconds(self.pid) - self.cpu_before

    def peak(self) -> int:
        """How much more it held at its worst."""
        self.subject.check_good_requests()
        return peak_bytes(self.pid) - self.before


@pytest.fixture
def measured(ours: Subject) -> Measured:
    return Measured(ours)


@pytest.fixture
def crowd(ours: Subject) -> Iterator[list[Connection]]:
    """Fifty connections."""
    connections = [ours.connect() for _ in range(50)]
    yield connections
    for connection in connections:
        connection.close()


def test_a_promise_of_99_mebibytes_costs_nothing(
    measured: Measured, crowd: list[Connection]
) -> None:
    for connection in crowd:
        connection.send_bytes(struct.pack(">i", 99 * MIB) + b"a few bytes")
    assert measured.peak() < 4 * MIB
    for connection in crowd:
        connection.send_bytes(bytes(1000))
    assert measured.peak() < 4 * MIB


def test_what_arrives_of_a_promise_is_kept_and_no_more(
    measured: Measured, crowd: list[Connection]
) -> None:
    for connection in crowd[:10]:
        connection.send_bytes(struct.pack(">i", 99 * MIB) + bytes(3 * MIB))
    assert measured.peak() < 10 * 3 * 4 * MIB
    for connection in crowd[:10]:
        connection.close()
    # glibc keeps some of what was freed for the next large frames; three a connection came.
    assert measured.grown() < 20 * MIB


def test_frames_that_arrive_byte_by_byte(measured: Measured, crowd: list[Connection]) -> None:
    asked = raw_requests.api_versions(0)
    for byte in with_length(asked.data):
        for connection in crowd:
            connection.send_bytes(bytes([byte]))
    for connection in crowd:
        answer = connection.receive_answer(asked)
        assert raw_answers.versions(answer, 0).error_code == 0
    assert measured.peak() < 4 * MIB


def test_answers_that_nobody_reads(measured: Measured, crowd: list[Connection]) -> None:
    """Every connection asks and asks, until the broker reads no more from it."""
    data = with_length(raw_requests.describe_configs(4, [(4, "1")]).data) * 5000
    sent = 0
    for connection in crowd[:5]:
        connection.socket.settimeout(0.2)
        for _ in range(1000):
            try:
                connection.socket.sendall(data)
            except TimeoutError:
                break
            sent += len(data)
        else:
            raise AssertionError("the broker reads on although nobody takes its answers")
    assert measured.peak() < 5 * 12 * MIB
    for connection in crowd[:5]:
        connection.close()
    assert measured.grown() < 32 * MIB


HUGE = 2**31 - 1
COUNTS: list[Frame] = []
for _frame in raw_requests.every_request(Place(), raw_requests.Control(), 9092):
    for _mark in _frame.marks:
        if _mark.kind != "count":
            continue
        _size = _mark.end - _mark.start
        _count = struct.pack(">i", HUGE) if _size == 4 else b"\xff\xff\xff\xff\x07"
        COUNTS.append(
            _frame.replaced(_frame.data[: _mark.start] + _count + _frame.data[_mark.end :])
        )


def test_every_count_of_every_request_may_be_two_billion(measured: Measured) -> None:
    """The connection is closed before room is made for what cannot be there."""
    assert len(COUNTS) > 300
    for frame in COUNTS:
        with measured.subject.connect() as connection:
            connection.send(frame)
            assert connection.is_closed_by_broker(), frame
    assert measured.peak() < 4 * MIB


@pytest.mark.parametrize("api_key", [2, 3, 20, 23])
def test_an_array_that_only_an_attacker_needs(ours: Subject, api_key: int) -> None:
    """A few bytes each on the wire, an object each in memory: millions of them are not made."""
    frame = {
        2: raw_requests.list_offsets(0, Place("")),
        3: raw_requests.metadata(1, [""]),
        20: raw_requests.delete_topics(0, [""]),
        23: raw_requests.offset_for_leader_epoch(0, Place("")),
    }[api_key]
    first = next(mark for mark in frame.marks if mark.kind == "count")
    head = frame.data[: first.start]
    measured = Measured(ours)
    with ours.connect() as connection:
        data = head + struct.pack(">i", 1_000_000) + bytes(6) * 1_000_000
        connection.send_bytes(with_length(data))
        assert connection.is_closed_by_broker()
    assert measured.peak() < 3 * len(data)
    assert measured.cpu() < 0.5


def repeated(frame: Frame, count: int) -> Frame:
    """The request with the one element of its first array so many times."""
    first = next(mark for mark in frame.marks if mark.kind == "count")
    assert first.end - first.start == 4
    return frame.replaced(
        frame.data[: first.start]
        + struct.pack(">i", count)
        + frame.data[first.end : _end_of_first_element(frame)] * count
        + frame.data[_end_of_first_element(frame) :]
    )


def _end_of_first_element(frame: Frame) -> int:
    """Where the elements of the first array end, by how many bytes follow them."""
    behind = {1: 0, 3: 1, 32: 2, 2: 0, 23: 0, 19: 5, 20: 4}
    return len(frame.data) - behind[frame.api_key]


AMPLIFIED = {
    "DescribeConfigs": raw_requests.describe_configs(3, [(4, "1")]),
    "DescribeConfigs-topic": raw_requests.describe_configs(3, [(2, "amplified")]),
    "Metadata": raw_requests.metadata(4, ["amplified"]),
    "ListOffsets": raw_requests.list_offsets(5, Place("amplified")),
    "OffsetForLeaderEpoch": raw_requests.offset_for_leader_epoch(3, Place("amplified")),
    "CreateTopics": raw_requests.create_topics(4, ["amplified"]),
    "DeleteTopics": raw_requests.delete_topics(3, ["amplified-not-there"]),
}


@pytest.mark.parametrize("name", AMPLIFIED)
def test_the_same_question_20000_times_in_one_request(ours: Subject, name: str) -> None:
    """An answer may not be out of all proportion to its question."""
    asked = raw_requests.create_topics(4, ["amplified"], partitions=50)
    with ours.connect() as connection:
        connection.ask(asked)
    measured = Measured(ours)
    frame = repeated(AMPLIFIED[name], 20_000)
    with ours.connect() as connection:
        connection.send(frame)
        answer = connection.receive()
    assert answer is not None
    assert len(answer) < 20 * len(frame.data) + 100_000
    assert measured.peak() < 60 * len(frame.data) + 16 * MIB
    assert measured.cpu() < 3.0


def zeros(size: int) -> Iterator[bytes]:
    piece = bytes(MIB)
    for _ in range(size // MIB):
        yield piece


def gzip_bomb(size: int) -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    return b"".join(packer.compress(piece) for piece in zeros(size)) + packer.flush()


def zstd_bomb(size: int) -> bytes:
    packer = cramjam.zstd.Compressor(19)
    for piece in zeros(size):
        packer.compress(piece)
    return bytes(packer.finish())


def lz4_bomb(size: int) -> bytes:
    packer = cramjam.lz4.Compressor(0)
    for piece in zeros(size):
        packer.compress(piece)
    return bytes(packer.finish())


def snappy_bomb(size: int) -> bytes:
    """Blocks of the framing that Kafka's clients use."""
    block = bytes(cramjam.snappy.compress_raw(bytes(MIB)))
    framed = struct.pack(">i", len(block)) + block
    return b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + framed * (size // MIB)


def snappy_lie(size: int) -> bytes:
    """A block that says how much it will become, and has nothing."""
    claim = to_uvarint(size)
    return b"\x82SNAPPY\x00" + struct.pack(">iii", 1, 1, len(claim)) + claim


BOMBS: dict[str, tuple[str, Callable[[int], bytes], int]] = {
    "gzip": ("gzip", gzip_bomb, 300 * MIB),
    "zstd": ("zstd", zstd_bomb, 500 * MIB),
    "lz4": ("lz4", lz4_bomb, 200 * MIB),
    "snappy": ("snappy", snappy_bomb, 20 * MIB),
    "snappy-lie": ("snappy", snappy_lie, 2**31 - 1),
}


@functools.cache
def bomb(name: str) -> bytes:
    _, make, size = BOMBS[name]
    return make(size)


@pytest.mark.parametrize("target", ["producer", "lz4", "gzip"])
@pytest.mark.parametrize("name", BOMBS)
def test_a_decompression_bomb(ours: Subject, name: str, target: str) -> None:
    """On a topic that keeps the codec, and on topics for which the broker compresses anew."""
    codec, _, _ = BOMBS[name]
    place = ours.topic(f"bombs-{target}", {"compression.type": target})
    payload = bomb(name)
    assert len(payload) < MIB
    measured = Measured(ours)
    answer = ours.produce(place, batch(codec=codec, payload=payload))
    assert answer.error_code == INVALID_RECORD
    assert ours.log_end(place) == 0
    assert measured.cpu() < 3.0
    assert measured.peak() < 300 * MIB
    assert measured.grown() < 64 * MIB


def test_a_batch_of_a_half_a_million_wrong_records(ours: Subject) -> None:
    """Each of them is out of time; the answer names some and does not name them all."""
    place = ours.topic("bombs-time", {"message.timestamp.after.max.ms": "1000"})
    count = 500_000
    plain = b"".join(
        record_bytes(Record(None, None, timestamp_delta=10**9), n) for n in range(count)
    )
    payload = bytes(cramjam.zstd.compress(plain, 3))
    data = batch(codec="zstd", payload=payload, record_count=count, last_offset_delta=count - 1)
    assert len(data) < MIB
    measured = Measured(ours)
    answer = ours.produce(place, data)
    assert answer.error_code == INVALID_TIMESTAMP
    assert 1 <= len(answer.record_errors) <= 1000
    assert measured.cpu() < 3.0
    assert measured.peak() < 200 * MIB


@pytest.mark.parametrize("count", [1_000_000, 1_000_001, 18_000_000])
def test_a_few_bytes_that_are_millions_of_records(ours: Subject, count: int) -> None:
    """All alike, so that they compress to nothing, and each would have to be numbered anew.

    As many as a request may carry are too many to be numbered; more are no batch at all.
    """
    place = ours.topic("bombs-many")
    plain = record_bytes(Record(None, None), 0) * count
    payload = bytes(cramjam.zstd.compress(plain, 3))
    assert len(payload) < MIB // 16
    measured = Measured(ours)
    data = batch(codec="zstd", payload=payload, record_count=count, last_offset_delta=count - 1)
    refused = MESSAGE_TOO_LARGE if count == 1_000_000 else INVALID_RECORD
    assert ours.produce(place, data).error_code == refused
    assert measured.cpu() < 3.0
    assert measured.peak() < 100 * MIB
    assert ours.log_end(place) == 0


def test_a_million_messages_of_an_old_format_in_one(ours: Subject) -> None:
    place = ours.topic("bombs-old")
    size = 40
    plain = raw_batches.message(b"", 1)
    payload = zlib.compress(plain * 1_000_000, 9, wbits=31)
    assert len(plain) < size and len(payload) < MIB
    measured = Measured(ours)
    answer = ours.produce(place, raw_batches.message(payload, 1, attributes=1), api_version=2)
    assert answer.error_code in (0, INVALID_RECORD)
    assert measured.cpu() < 3.0
    assert measured.peak() < 300 * MIB


def test_idle_connections_are_closed(tmp_path: Path) -> None:
    settings = {
        "connections.max.idle.ms": "1000",
        "connection.failed.authentication.delay.ms": "100",
    }
    with BrokerProcess(tmp_path, settings) as broker:
        silent = Connection(broker.port)
        half = Connection(broker.port)
        half.send_bytes(struct.pack(">i", 1000) + b"half")
        assert silent.is_closed_by_broker()
        assert half.is_closed_by_broker()
        with Connection(broker.port) as another:
            asked = raw_requests.api_versions(0)
            assert raw_answers.versions(another.ask(asked), 0).error_code == 0


def test_too_many_connections_are_closed_and_counted(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, {"max.connections": "20"}) as broker:
        asked = raw_requests.api_versions(0)
        taken: list[Connection] = []
        turned_away = 0
        for _ in itertools.repeat(None, 30):
            connection = Connection(broker.port)
            try:
                connection.ask(asked)
                taken.append(connection)
            except (AssertionError, OSError):
                turned_away += 1
        assert 18 <= len(taken) <= 20
        assert turned_away == 30 - len(taken)
        for connection in taken:
            assert raw_answers.versions(connection.ask(asked), 0).error_code == 0
        for connection in taken:
            connection.close()
        with Connection(broker.port) as again:
            assert raw_answers.versions(again.ask(asked), 0).error_code == 0
            deadline = time.monotonic() + 20
            story = f"{turned_away} connections were closed at once"
            while story not in broker.story() and time.monotonic() < deadline:
                assert not again.is_closed_by_broker(seconds=0.2)
        assert story in broker.story()


def test_one_host_may_have_a_limit_of_its_own(tmp_path: Path) -> None:
    settings = {"max.connections.per.ip.overrides": "127.0.0.1:10"}
    with BrokerProcess(tmp_path, settings) as broker:
        asked = raw_requests.api_versions(0)
        connections = [Connection(broker.port) for _ in range(12)]
        served = 0
        for connection in connections:
            connection.send(asked)
            with contextlib.suppress(OSError):
                served += connection.receive() is not None
        assert 8 <= served <= 10
