"""Record batches against Kafka's own classes: built here and read there, and the other way.

What a producer is answered and what is written for it is compared with a real leader's log.
"""

import random
import struct
import subprocess
from collections.abc import Iterable, Sequence

from crc32c import crc32c

from barnabas.formats.batches.admission import (
    AdmittedBatch,
    ProduceRules,
    Rejection,
    WorkBudget,
    admit,
    check_batch,
    read_produced,
)
from barnabas.formats.batches.builder import BatchBuilder, build_batch
from barnabas.formats.batches.compression import CODEC_OF_CONFIG, CompressionCodec
from barnabas.formats.batches.control import EndMarker, build_end_marker
from barnabas.formats.batches.conversion import (
    ConversionBudget,
    admit_message_set,
    down_converted,
)
from barnabas.formats.batches.header import BatchHeader, stamp
from barnabas.formats.batches.old_magic import build_message_set, read_message_set
from barnabas.formats.batches.reader import Record, RecordHeader, batches_in, read_records
from barnabas.model.error_codes import ErrorCode
from tests.tools import ROOT, java_command, need

SOURCE = ROOT / "tests" / "oracles" / "RecordBatches.java"
NOW_MS = 1_700_000_000_000
LEADER_EPOCH = 3
"""What the real log's leader stamps on batches."""
SAME_FIELDS = (
    *("base_offset", "partition_leader_epoch", "magic", "attributes", "last_offset_delta"),
    *("max_timestamp", "producer_id", "producer_epoch", "base_sequence", "record_count"),
)
"""All but what another compressor or another first timestamp changes."""

RECORDS = [
    Record(0, NOW_MS, b"key", b"value" * 50),
    Record(0, NOW_MS + 3, None, b"", (RecordHeader("a", b"1"), RecordHeader("", None))),
    Record(0, NOW_MS - 5, b"", None, (RecordHeader("schl\u00fcssel", b"\0" * 300),)),
    Record(0, NOW_MS + 1, bytes(range(256)), b"x" * 70_000),
]
PLAIN = [record._replace(headers=()) for record in RECORDS]
KEYED = [record._replace(key=b"k%d" % n) for n, record in enumerate(RECORDS)]


def kafka(lines: Sequence[str]) -> list[str]:
    need("java")
    finished = subprocess.run(
        java_command(SOURCE),
        input="\n".join(lines),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    answers = finished.stdout.splitlines()
    assert len(answers) == len(lines), finished.stderr[-2000:]
    return answers


def _hex(value: bytes | None) -> str:
    return "-" if value is None else value.hex()


def _told(data: bytes) -> str:
    """What `read` must say of these batches of magic 2."""
    parts: list[str] = []
    for position, header in batches_in(data, 0, len(data)):
        horizon = header.base_timestamp if header.has_delete_horizon else -1
        parts.append(
            f"B {header.base_offset} {header.last_offset} 2 {header.compression_codec} "
            f"{header.timestamp_type} {header.max_timestamp} {header.producer_id} "
            f"{header.producer_epoch} {header.base_sequence} "
            f"{str(header.is_transactional).lower()} {str(header.is_control).lower()} "
            f"{header.partition_leader_epoch} {horizon} {header.size_bytes}"
        )
        for record in read_records(data, header, position):
            parts.append(f"R {record.offset} {record.timestamp} " + _record_rest(record))
    return "|".join(parts)


def _record_rest(record: Record) -> str:
    headers = "".join(f"{key.encode().hex()}={_hex(value)};" for key, value in record.headers)
    return f"{_hex(record.key)} {_hex(record.value)} {record.sequence} {headers}"


def _build_line(
    magic: int, codec: CompressionCodec, time_type: str, base: int, producer: tuple[int, int, int]
) -> str:
    given = ",".join(
        f"{r.timestamp}:{_hex(r.key)}:{_hex(r.value)}:"
        + "".join(f"{key.encode().hex()}={_hex(value)};" for key, value in r.headers)
        for r in (RECORDS if magic == 2 else PLAIN)
    )
    now_ms = NOW_MS if time_type == "LogAppendTime" else -1
    transactional = str(producer[0] >= 0).lower()
    return (
        f"build {magic} {int(codec)} {time_type} {base} {now_ms} {producer[0]} {producer[1]} "
        f"{producer[2]} {transactional} {given}"
    )


def test_kafka_reads_what_is_built_here():
    built: list[bytes] = []
    for codec in CompressionCodec:
        built.append(build_batch(RECORDS, codec=codec, base_offset=77))
        built.append(
            build_batch(
                KEYED,
                codec=codec,
                log_append_time_ms=NOW_MS,
                producer_id=2**40,
                producer_epoch=3,
                base_sequence=2**31 - 2,
                is_transactional=True,
                leader_epoch=9,
            )
        )
        for level in (1, 5, 12) if codec is CompressionCodec.LZ4 else (1, 4):
            built.append(build_batch(RECORDS, codec=codec, level=level))
    builder = BatchBuilder(base_offset=10, delete_horizon_ms=NOW_MS + 1)
    builder.append(b"gone", None, NOW_MS, offset=13)
    built.append(builder.build(producer_id=1, producer_epoch=0, base_sequence=2, last_offset=20))
    built.append(
        build_end_marker(
            EndMarker(False, 5), producer_id=8, producer_epoch=1, timestamp=NOW_MS, base_offset=4
        )
    )
    built.append(b"".join(built))
    for batch, answer in zip(built, kafka([f"read {batch.hex()}" for batch in built]), strict=True):
        assert answer == _told(batch)


def test_what_kafka_builds_is_read_here():
    cases = [
        (magic, codec, time_type, base, producer)
        for magic in (0, 1, 2)
        for codec in CompressionCodec
        for time_type in ("CreateTime", "LogAppendTime")
        for base in (0, 5_000_000_000)
        for producer in (((-1, -1, -1), (7, 2, 2**31 - 2)) if magic == 2 else ((-1, -1, -1),))
        if magic == 2 or codec is not CompressionCodec.ZSTD
    ]
    answers = kafka([_build_line(*case) for case in cases])
    ours: list[bytes] = []
    for (magic, codec, time_type, base, producer), answer in zip(cases, answers, strict=True):
        batch = bytes.fromhex(answer)
        is_appended = time_type == "LogAppendTime"
        numbered = [
            record._replace(
                offset=base + n,
                timestamp=NOW_MS if is_appended else -1 if magic == 0 else record.timestamp,
                sequence=-1 if producer[2] < 0 else (producer[2] + n) % 2**31,
            )
            for n, record in enumerate(RECORDS if magic == 2 else PLAIN)
        ]
        if magic == 2:
            header = BatchHeader(batch, 0)
            assert read_records(batch, header, 0) == numbered
            ours.append(
                build_batch(
                    RECORDS,
                    codec=codec,
                    base_offset=base,
                    log_append_time_ms=NOW_MS if is_appended else None,
                    producer_id=producer[0],
                    producer_epoch=producer[1],
                    base_sequence=producer[2],
                    is_transactional=producer[0] >= 0,
                    leader_epoch=LEADER_EPOCH,
                )
            )
        else:
            if magic == 0:
                numbered = [record._replace(timestamp=-1) for record in numbered]
            assert read_message_set(batch, 0, len(batch)) == numbered
            ours.append(
                build_message_set(
                    numbered,
                    magic=magic,
                    codec=codec,
                    log_append_time_ms=NOW_MS if is_appended else None,
                )
            )
        if codec is CompressionCodec.NONE:
            assert batch == ours[-1]
    theirs = kafka([f"read {bytes.fromhex(answer).hex()}" for answer in answers])
    for line, told in zip(kafka([f"read {data.hex()}" for data in ours]), theirs, strict=True):
        assert _without_sizes(line) == _without_sizes(told)


def _without_sizes(told: str) -> list[str]:
    """Batches of two compressors may differ in size alone."""
    return [part.rsplit(" ", 1)[0] if part.startswith("B") else part for part in told.split("|")]


def test_both_send_the_same_to_old_consumers():
    lines: list[str] = []
    expected: list[list[Record] | bytes] = []
    for codec in CompressionCodec:
        if codec is CompressionCodec.ZSTD:
            continue
        data = (
            build_batch(RECORDS, codec=codec, base_offset=100)
            + build_end_marker(
                EndMarker(True, 1),
                producer_id=1,
                producer_epoch=0,
                timestamp=NOW_MS,
                base_offset=104,
            )
            + build_batch(KEYED, codec=codec, base_offset=105, log_append_time_ms=NOW_MS)
        )
        for magic in (0, 1):
            for first_offset in (0, 102):
                lines.append(f"down {magic} {first_offset} {data.hex()}")
                converted = down_converted(
                    data,
                    0,
                    len(data),
                    to_magic=magic,
                    first_offset=first_offset,
                    budget=ConversionBudget(),
                )
                assert isinstance(converted, bytes)
                is_plain = codec is CompressionCodec.NONE
                expected.append(
                    converted if is_plain else read_message_set(converted, 0, len(converted))
                )
    for answer, ours in zip(kafka(lines), expected, strict=True):
        theirs = bytes.fromhex(answer)
        if isinstance(ours, bytes):
            assert theirs == ours
        else:
            assert read_message_set(theirs, 0, len(theirs)) == ours


SETTINGS = [
    "",
    "compression.type=lz4",
    "compression.type=uncompressed",
    "message.timestamp.type=LogAppendTime",
    "cleanup.policy=compact",
    "message.timestamp.before.max.ms=1000;message.timestamp.after.max.ms=2000",
    "max.message.bytes=500",
    "segment.bytes=600",
    "compression.type=zstd;message.timestamp.type=LogAppendTime;cleanup.policy=compact,delete",
]


def rules_of(settings: str) -> ProduceRules:
    pairs = dict(setting.split("=") for setting in settings.split(";") if setting)
    codec = pairs.get("compression.type")
    bound = 0x7FFF_FFFF_FFFF_FFFF
    return ProduceRules(
        max_message_bytes=int(pairs.get("max.message.bytes", 1_048_588)),
        segment_bytes=int(pairs.get("segment.bytes", 1 << 30)),
        codec=-1 if codec is None else int(CODEC_OF_CONFIG[codec]),
        is_log_append_time=pairs.get("message.timestamp.type") == "LogAppendTime",
        timestamp_before_max_ms=int(pairs.get("message.timestamp.before.max.ms", bound)),
        timestamp_after_max_ms=int(pairs.get("message.timestamp.after.max.ms", bound)),
        needs_keys="compact" in pairs.get("cleanup.policy", ""),
    )


def _ours(version: int, settings: str, data: bytes) -> tuple[str, AdmittedBatch | None]:
    """The answer in the words of the oracle, and the batch if there is one."""
    rules = rules_of(settings)
    result: object = read_produced(data, 0, len(data), version)
    if result is None:
        result = admit_message_set(data, 0, len(data), rules, NOW_MS, WorkBudget())
    elif isinstance(result, BatchHeader):
        header = result
        result = check_batch(data, header, 0, rules) or admit(
            data, header, 0, rules, NOW_MS, WorkBudget()
        )
    if isinstance(result, Rejection):
        indexes = ",".join(str(index) for index, _ in result.record_errors)
        return f"{result.error_code.name} {indexes}".strip(), None
    assert result is None or isinstance(result, AdmittedBatch)
    return "NONE", result


def _with_crc(batch: bytearray) -> bytes:
    batch[17:21] = crc32c(batch[21:]).to_bytes(4, "big")
    return bytes(batch)


def _changed(batch: bytes, position: int, layout: str, value: int) -> bytes:
    copy = bytearray(batch)
    struct.pack_into(">" + layout, copy, position, value)
    return _with_crc(copy)


_producers = iter(range(1000, 10**6))


def _produced() -> Iterable[tuple[int, bytes]]:
    """Good and bad requests of every version; producer ids are used once."""
    small = [record._replace(value=(record.value or b"")[:40]) for record in KEYED]
    for codec in CompressionCodec:
        for version in (2, 3, 6, 7, 11):
            yield version, build_batch(RECORDS, codec=codec)
            yield version, build_batch(small, codec=codec)
        yield 9, build_batch(small, codec=codec, log_append_time_ms=NOW_MS + 5)
        yield 9, build_batch(small, codec=codec, log_append_time_ms=-1)
        yield 9, build_batch([Record(0, -1, b"k", b"v")], codec=codec)
        yield 9, build_batch([Record(0, NOW_MS - 1001, b"k", b"v")] * 2, codec=codec)
        yield 9, build_batch([Record(0, NOW_MS + 2001, b"k", b"v"), *small], codec=codec)
        yield 9, build_batch([Record(0, NOW_MS + 2001, None, b"v"), *small], codec=codec)
        yield (
            9,
            build_batch(
                small,
                codec=codec,
                producer_id=next(_producers),
                producer_epoch=0,
                base_sequence=0,
                is_transactional=True,
            ),
        )
        yield 9, _changed(build_batch(small, codec=codec), 35, "q", NOW_MS + 99_999)
    yield from _cut_and_changed(build_batch(small))
    yield from _old_sets(build_batch(small))


def _cut_and_changed(batch: bytes) -> Iterable[tuple[int, bytes]]:
    """A good batch with one thing wrong."""
    yield from ((version, b"") for version in (0, 2, 3, 11))
    yield from (
        (version, batch[:cut]) for version in (2, 9) for cut in (5, 12, 16, 60, len(batch) - 1)
    )
    yield from ((version, batch + batch) for version in (2, 9))
    yield from ((9, batch + tail) for tail in (b"!", bytes(11), bytes(20), batch[:-1]))
    yield 9, batch[:-1] + b"!"
    for length in (-1, 0, 13, 14, 48):
        yield 9, batch[:8] + struct.pack(">i", length) + batch[12:]
    yield from ((9, batch[:16] + bytes((magic,)) + batch[17:]) for magic in (0, 1, 3, 255))
    for position, layout, values in (
        (0, "q", (1, -1)),
        (12, "i", (-1, 0, 99)),
        (21, "h", (1, 2, 3, 4, 5, 6, 7, 8, 0x10, 0x20, 0x80, -0x8000)),
        (23, "i", (-1, 0, 2, 4, 2**31 - 1)),
        (35, "q", (-1, 0, NOW_MS * 2)),
        (43, "q", (0, 5)),
        (53, "i", (-5, 7)),
        (57, "i", (-1, 0, 3, 5, 2**31 - 1)),
    ):
        yield from ((9, _changed(batch, position, layout, value)) for value in values)
    yield 9, _changed(_changed(batch, 57, "i", 5), 23, "i", 4)
    yield 9, _changed(_changed(batch, 57, "i", 3), 23, "i", 2)


def _old_sets(batch: bytes) -> Iterable[tuple[int, bytes]]:
    """Message sets of both old magics, good and bad, also beside the batch."""
    numbered = [record._replace(offset=n) for n, record in enumerate(PLAIN)]
    for magic in (0, 1):
        for codec in CompressionCodec:
            if codec is CompressionCodec.ZSTD:
                continue
            old = build_message_set(numbered, magic=magic, codec=codec)
            for version in (0, 1, 2, 3):
                yield version, old
            yield 2, old + old[: len(old) // 2]
            yield 2, old + build_message_set(numbered, magic=1 - magic)
            yield 2, old + batch
            yield 2, old[:-1] + b"!"
            yield (
                2,
                build_message_set(numbered, magic=magic, codec=codec, log_append_time_ms=NOW_MS),
            )


def _is_our_word_for(theirs: str, ours: str) -> bool:
    """Where Kafka tells the client that the server failed, we say that the batch is bad.

    So it is when a stream cannot be decompressed, lengths lead out of its buffers, or a batch
    would have to be built anew that could not have been built in the first place.
    """
    return theirs == "UNKNOWN_SERVER_ERROR" and ours in (
        "INVALID_RECORD",
        "CORRUPT_MESSAGE",
        "INVALID_TIMESTAMP",
    )


def _compare(requests: Sequence[tuple[int, str, bytes]]) -> dict[str, int]:
    """How often each answer was given by both."""
    lines = [
        f"produce {version} {NOW_MS} {settings or '-'} {data.hex()}"
        for version, settings, data in requests
    ]
    seen: dict[str, int] = {}
    for (version, settings, data), answer in zip(requests, kafka(lines), strict=True):
        ours, admitted = _ours(version, settings, data)
        story = (version, settings, data.hex()[:400], ours, answer[:300])
        words = answer.split(" ")
        if words[0] != "NONE":
            assert ours == answer.strip() or _is_our_word_for(answer.strip(), ours), story
        elif words[1] == "-1":
            assert (ours, admitted) == ("NONE", None), story
        else:
            assert ours == "NONE", story
            assert admitted is not None, story
            _compare_written(admitted, int(words[1]), bytes.fromhex(words[2]), story)
        seen[words[0]] = seen.get(words[0], 0) + 1
    return seen


def _compare_written(
    admitted: AdmittedBatch, base_offset: int, theirs: bytes, story: object
) -> None:
    parts: list[bytes | memoryview] = []
    stamp(parts, admitted.data, admitted.header, admitted.start, base_offset, LEADER_EPOCH)
    ours = b"".join(parts)
    our_header, their_header = BatchHeader(ours, 0), BatchHeader(theirs, 0)
    assert read_records(ours, our_header, 0) == read_records(theirs, their_header, 0), story
    for name in SAME_FIELDS:
        assert getattr(our_header, name) == getattr(their_header, name), (name, story)
    if (
        our_header.compression_codec == 0
        and our_header.base_timestamp == their_header.base_timestamp
    ):
        assert ours == theirs, story


def test_producers_are_answered_as_kafka_answers_them():
    requests = [(version, settings, data) for settings in SETTINGS for version, data in _produced()]
    seen = _compare(requests)
    assert {
        "NONE",
        "INVALID_RECORD",
        "CORRUPT_MESSAGE",
        "MESSAGE_TOO_LARGE",
        "RECORD_LIST_TOO_LARGE",
        "INVALID_TIMESTAMP",
        "UNSUPPORTED_COMPRESSION_TYPE",
        "UNKNOWN_SERVER_ERROR",
    } <= set(seen)


def test_changed_bytes_are_judged_as_kafka_judges_them():
    """Random changes behind a fitting checksum, so that they are seen beyond the header."""
    chance = random.Random(20)
    requests: list[tuple[int, str, bytes]] = []
    small = [record._replace(value=(record.value or b"")[:40]) for record in KEYED]
    for _ in range(1500):
        batch = bytearray(build_batch(small[: chance.randint(1, 4)]))
        for _ in range(chance.randint(1, 2)):
            batch[chance.randrange(61, len(batch))] = chance.randrange(256)
        requests.append((9, chance.choice(SETTINGS[:6]), _with_crc(batch)))
    kept: list[tuple[int, str, bytes]] = []
    for request in requests:
        ours, admitted = _ours(*request)
        # A record whose offset delta is wrong is kept by Kafka and put right by us.
        if ours != "NONE" or admitted is None or admitted.data is request[2]:
            kept.append(request)
    seen = _compare(kept)
    assert seen["NONE"] > 100
    assert seen["INVALID_RECORD"] > 100
    assert ErrorCode.INVALID_RECORD == 87
