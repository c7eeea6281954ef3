"""What a broker answered, read by hand as far as tests of bad input look at it."""

from typing import NamedTuple

from tests.e2e.raw_wire import Frame, Reader


class Produced(NamedTuple):
    """The answer for the one partition that was produced to."""

    error_code: int
    base_offset: int
    log_append_time_ms: int
    record_errors: list[int]
    """The places of the refused records in the batch (version 8 and later)."""
    message: str | None


def produced(frame: Frame, reader: Reader) -> Produced:
    version = frame.api_version
    answers: list[Produced] = []

    def record_error() -> int:
        index = reader.int32()
        reader.string()
        reader.tags()
        return index

    def partition() -> None:
        reader.int32()
        error_code = reader.int16()
        base_offset = reader.int64()
        log_append_time_ms = reader.int64() if version >= 2 else -1
        if version >= 5:
            reader.int64()
        record_errors = reader.array(record_error) if version >= 8 else []
        message = reader.string() if version >= 8 else None
        reader.tags()
        answers.append(
            Produced(error_code, base_offset, log_append_time_ms, record_errors, message)
        )

    def topic() -> None:
        reader.string()
        reader.array(partition)
        reader.tags()

    reader.array(topic)
    if version >= 1:
        reader.int32()
    reader.tags()
    reader.end()
    assert len(answers) == 1
    return answers[0]


class FetchedPartition(NamedTuple):
    """One partition of a Fetch answer."""

    partition: int
    error_code: int
    high_watermark: int
    records: bytes | None
    diverging_epoch: bytes | None


class Fetched(NamedTuple):
    """A Fetch answer."""

    error_code: int
    session_id: int
    partitions: list[FetchedPartition]


def fetched(frame: Frame, reader: Reader) -> Fetched:
    version = frame.api_version
    partitions: list[FetchedPartition] = []

    def aborted() -> None:
        reader.int64()
        reader.int64()
        reader.tags()

    def partition() -> None:
        index = reader.int32()
        error_code = reader.int16()
        high_watermark = reader.int64()
        if version >= 4:
            reader.int64()
        if version >= 5:
            reader.int64()
        if version >= 4:
            reader.array(aborted)
        if version >= 11:
            reader.int32()
        records = reader.sized()
        diverging_epoch = reader.tags().get(0)
        partitions.append(
            FetchedPartition(index, error_code, high_watermark, records, diverging_epoch)
        )

    def topic() -> None:
        if version >= 13:
            reader.uuid()
        else:
            reader.string()
        reader.array(partition)
        reader.tags()

    if version >= 1:
        reader.int32()
    error_code = reader.int16() if version >= 7 else 0
    session_id = reader.int32() if version >= 7 else 0
    reader.array(topic)
    reader.tags()
    reader.end()
    return Fetched(error_code, session_id, partitions)


class ListedOffset(NamedTuple):
    """The offset found for the one partition that was asked for."""

    error_code: int
    timestamp: int
    offset: int


def listed_offset(frame: Frame, reader: Reader) -> ListedOffset:
    """Of version 1 and later."""
    answers: list[ListedOffset] = []

    def partition() -> None:
        reader.int32()
        answers.append(ListedOffset(reader.int16(), reader.int64(), reader.int64()))
        if frame.api_version >= 4:
            reader.int32()
        reader.tags()

    def topic() -> None:
        reader.string()
        reader.array(partition)
        reader.tags()

    if frame.api_version >= 2:
        reader.int32()
    reader.array(topic)
    reader.tags()
    reader.end()
    return answers[0]


class DescribedTopic(NamedTuple):
    """One topic of a Metadata answer."""

    error_code: int
    name: str | None
    topic_id: bytes
    leaders: list[tuple[int, int, int]]
    """Partition, leader, leader epoch."""


class Described(NamedTuple):
    """A Metadata answer."""

    brokers: list[tuple[int, str | None, int]]
    controller_id: int
    topics: list[DescribedTopic]


def described(frame: Frame, reader: Reader) -> Described:
    version = frame.api_version

    def broker() -> tuple[int, str | None, int]:
        row = (reader.int32(), reader.string(), reader.int32())
        if version >= 1:
            reader.string()
        reader.tags()
        return row

    def partition() -> tuple[int, int, int]:
        reader.int16()
        index = reader.int32()
        leader = reader.int32()
        epoch = reader.int32() if version >= 7 else -1
        reader.array(reader.int32)
        reader.array(reader.int32)
        if version >= 5:
            reader.array(reader.int32)
        reader.tags()
        return index, leader, epoch

    def topic() -> DescribedTopic:
        error_code = reader.int16()
        name = reader.string()
        topic_id = reader.uuid() if version >= 10 else bytes(16)
        if version >= 1:
            reader.boolean()
        leaders = sorted(reader.array(partition))
        if version >= 8:
            reader.int32()
        reader.tags()
        return DescribedTopic(error_code, name, topic_id, leaders)

    if version >= 3:
        reader.int32()
    brokers = reader.array(broker)
    if version >= 2:
        reader.string()
    controller_id = reader.int32() if version >= 1 else -1
    topics = reader.array(topic)
    if 8 <= version <= 10:
        reader.int32()
    reader.tags()
    reader.end()
    return Described(brokers, controller_id, topics)


class Versions(NamedTuple):
    """An ApiVersions answer."""

    error_code: int
    apis: dict[int, tuple[int, int]]


def versions(reader: Reader, api_version: int) -> Versions:
    """In the layout of `api_version`, which is 0 when the asked one is not known."""

    def api() -> tuple[int, tuple[int, int]]:
        row = (reader.int16(), (reader.int16(), reader.int16()))
        reader.tags()
        return row

    reader.is_flexible = api_version >= 3
    error_code = reader.int16()
    apis = dict(reader.array(api))
    if api_version >= 1:
        reader.int32()
    reader.tags()
    reader.end()
    return Versions(error_code, apis)


def controlled(frame: Frame, reader: Reader) -> tuple[int, list[int]]:
    """A control request's error, and those of its partitions."""
    is_by_topic = frame.api_key == 4 and frame.api_version >= 5

    def partition() -> int:
        if not is_by_topic:
            reader.string()
        reader.int32()
        error_code = reader.int16()
        reader.tags()
        return error_code

    def topic() -> list[int]:
        reader.uuid()
        errors = reader.array(partition)
        reader.tags()
        return errors

    error_code = reader.int16()
    partition_errors: list[int] = []
    if frame.api_key != 6:
        if is_by_topic:
            partition_errors = [error for errors in reader.array(topic) for error in errors]
        else:
            partition_errors = reader.array(partition)
    reader.tags()
    reader.end()
    return error_code, partition_errors


def created_topics(frame: Frame, reader: Reader) -> dict[str | None, int]:
    """Name and error of each topic."""
    version = frame.api_version

    def config() -> None:
        reader.string()
        reader.string()
        reader.boolean()
        reader.int8()
        reader.boolean()
        reader.tags()

    def topic() -> tuple[str | None, int]:
        name = reader.string()
        if version >= 7:
            reader.uuid()
        error_code = reader.int16()
        if version >= 1:
            reader.string()
        if version >= 5:
            reader.int32()
            reader.int16()
            reader.array(config)
        reader.tags()
        return name, error_code

    if version >= 2:
        reader.int32()
    rows = dict(reader.array(topic))
    reader.tags()
    reader.end()
    return rows


def deleted_topics(frame: Frame, reader: Reader) -> list[tuple[str | None, int]]:
    """Name and error of each topic."""
    version = frame.api_version

    def topic() -> tuple[str | None, int]:
        name = reader.string()
        if version >= 6:
            reader.uuid()
        error_code = reader.int16()
        if version >= 5:
            reader.string()
        reader.tags()
        return name, error_code

    if version >= 1:
        reader.int32()
    rows = reader.array(topic)
    reader.tags()
    reader.end()
    return rows


def expanded_topics(reader: Reader) -> list[tuple[str | None, int]]:
    """The answer to CreatePartitions: name and error of each topic."""

    def topic() -> tuple[str | None, int]:
        row = (reader.string(), reader.int16())
        reader.string()
        reader.tags()
        return row

    reader.int32()
    rows = reader.array(topic)
    reader.tags()
    reader.end()
    return rows


class GivenProducerId(NamedTuple):
    """An InitProducerId answer."""

    error_code: int
    producer_id: int
    producer_epoch: int


def given_producer_id(reader: Reader) -> GivenProducerId:
    reader.int32()
    given = GivenProducerId(reader.int16(), reader.int64(), reader.int16())
    reader.tags()
    reader.end()
    return given


class EpochEnd(NamedTuple):
    """An OffsetForLeaderEpoch answer for the one partition that was asked for."""

    error_code: int
    leader_epoch: int
    end_offset: int


def epoch_end(frame: Frame, reader: Reader) -> EpochEnd:
    version = frame.api_version
    answers: list[EpochEnd] = []

    def partition() -> None:
        error_code = reader.int16()
        reader.int32()
        epoch = reader.int32() if version >= 1 else -1
        answers.append(EpochEnd(error_code, epoch, reader.int64()))
        reader.tags()

    def topic() -> None:
        reader.string()
        reader.array(partition)
        reader.tags()

    if version >= 2:
        reader.int32()
    reader.array(topic)
    reader.tags()
    reader.end()
    return answers[0]
