"""Real requests made wrong: a corpus, and mutations that a seed brings back.

Most mutations know where the fields of a frame stand (`raw_wire.Mark`) and keep the rest of it
readable, so that the wrong value is met by a handler and not by the decoder. The others change
bytes blindly. The n-th frame of a seed is always the same.
"""

import functools
import json
import random
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.e2e import raw_batches
from tests.e2e.raw_requests import (
    FETCH,
    LEADER_AND_ISR,
    PRODUCE,
    STOP_REPLICA,
    UPDATE_METADATA,
    Control,
    Place,
    every_request,
)
from tests.e2e.raw_wire import Frame, Mark, to_uvarint

NAMES = [
    b"",
    b".",
    b"..",
    b"corpus",
    b"doomed",
    b"made",
    b"a" * 249,
    b"a" * 250,
    b"a" * 32767,
    b"__consumer_offsets",
    b"../../etc",
    b"\x00",
    b"\xff\xfe",
    "ü".encode(),
]
"""What takes the place of a string; the topic of good requests is not among them."""

INT_EDGES = {
    1: [0, 1, -1, 2, 127, -128],
    2: [0, 1, -1, 2, 100, 32767, -32768],
    4: [0, 1, -1, -2, 2, 7, 100, 2**31 - 1, -(2**31), 2**16],
    8: [0, 1, -1, -2, 2, 2**31, 2**63 - 1, -(2**63), 1 << 40],
}
VECTORS = Path(__file__).parent.parent / "vectors" / "wire"
RECORDED = {
    FETCH: "fetch.jsonl",
    LEADER_AND_ISR: "leader_and_isr.jsonl",
    STOP_REPLICA: "stop_replica.jsonl",
    UPDATE_METADATA: "update_metadata.jsonl",
}
RECORDED_PER_API = 2

FORMATS = {1: ">b", 2: ">h", 4: ">i", 8: ">q"}
INT_KINDS = ("int8", "int16", "int32", "int64", "correlation")
UVARINT_EDGES = [0, 1, 2, 3, 127, 128, 300, 2**14, 2**28, 2**31 - 1, 2**32 - 1]


class Mutant(NamedTuple):
    """A changed frame, and how it came to be."""

    frame: Frame
    changes: tuple[str, ...]


class Mutator:
    """Mutations of a corpus in the order that a seed gives."""

    def __init__(self, corpus: Sequence[Frame], seed: str) -> None:
        self.corpus = corpus
        self.random = random.Random(seed)
        self._by_api: dict[int, list[Frame]] = {}
        for frame in corpus:
            self._by_api.setdefault(frame.api_key, []).append(frame)
        self._apis = sorted(self._by_api)

    def next(self) -> Mutant:
        """An API, one of its frames, one to three mutations."""
        api_key = self.random.choice(self._apis)
        frame = self.random.choice(self._by_api[api_key])
        changes: list[str] = []
        wanted = self.random.choice((1, 1, 1, 2, 3))
        while len(changes) < wanted and frame.data:
            mutate = self._choose(frame)
            changed = mutate(frame)
            if changed is not None:
                changes.append(mutate.__name__.strip("_"))
                frame = changed
        return Mutant(frame, tuple(changes))

    def _choose(self, frame: Frame) -> Callable[[Frame], Frame | None]:
        if frame.marks and self.random.random() < 0.85:
            kinds = [self._value, self._value, self._value, self._name, self._elements]
            if frame.api_key == PRODUCE:
                kinds += [self._batch, self._batch, self._batch, self._batch]
            return self.random.choice(kinds)
        return self.random.choice(
            [
                self._bits,
                self._bytes,
                self._size,
                self._count,
                self._truncated,
                self._splice,
                self._inserted,
                self._removed,
                self._version,
            ]
        )

    def _some(self, frame: Frame, *kinds: str) -> Mark | None:
        found = [mark for mark in frame.marks if mark.kind in kinds]
        return self.random.choice(found) if found else None

    # Mutations that leave the rest of the frame readable

    def _value(self, frame: Frame) -> Frame | None:
        mark = self._some(frame, *INT_KINDS, "bool", "uuid")
        if mark is None:
            return None
        size = mark.end - mark.start
        if mark.kind == "uuid":
            return _replaced(frame, mark, self.random.choice((bytes(16), self._noise(16))))
        if self.random.random() < 0.3:
            return _replaced(frame, mark, self._noise(size))
        if self.random.random() < 0.3:
            (old,) = struct.unpack(FORMATS[size], frame.data[mark.start : mark.end])
            limit = 1 << (8 * size - 1)
            near = (old + self.random.choice((-2, -1, 1, 2)) + limit) % (2 * limit) - limit
            return _replaced(frame, mark, struct.pack(FORMATS[size], near))
        edge = self.random.choice(INT_EDGES[size])
        return _replaced(frame, mark, struct.pack(FORMATS[size], edge))

    def _name(self, frame: Frame) -> Frame | None:
        """Another string, with a size that fits it."""
        places = [
            (size, text)
            for size, text in zip(frame.marks, frame.marks[1:], strict=False)
            if size.kind == "size" and text.kind == "text"
        ]
        if not places:
            return None
        size, text = self.random.choice(places)
        old = frame.data[text.start : text.end]
        name = self.random.choice(NAMES)
        if self.random.random() < 0.3:
            name = old[:-1] + bytes((self.random.randrange(97, 123),))
        is_classic = size.end - size.start == 2 and frame.data[size.start] == 0
        length = struct.pack(">h", len(name)) if is_classic else to_uvarint(len(name) + 1)
        if not is_classic and len(to_uvarint(len(old) + 1)) != size.end - size.start:
            return None
        return _replaced(frame, Mark("text", size.start, text.end), length + name)

    def _elements(self, frame: Frame) -> Frame | None:
        """An element of an array is left out, or is there several times."""
        element = self._some(frame, "element")
        if element is None:
            return None
        arrays = [
            mark
            for mark in frame.marks
            if mark.kind == "array" and mark.start < element.start and element.end <= mark.end
        ]
        array = min(arrays, key=lambda mark: mark.end - mark.start)
        counted = next(m for m in frame.marks if m.kind == "count" and m.start == array.start)
        times = self.random.choice((0, 0, 2, 2, 3, 20))
        old = frame.data[counted.start : counted.end]
        if counted.end - counted.start == 4:
            count = struct.pack(">I", (int.from_bytes(old, "big") + times - 1) % 2**32)
        else:
            count = to_uvarint(max(0, _from_uvarint(old) + times - 1))
        data = frame.data
        return frame.replaced(
            data[: counted.start]
            + count
            + data[counted.end : element.start]
            + data[element.start : element.end] * times
            + data[element.end :]
        )

    def _batch(self, frame: Frame) -> Frame | None:
        """Another batch, most often with the checksum that it asks for."""
        mark = self._some(frame, "records")
        if mark is None:
            return None
        old = frame.data[mark.start : mark.end]
        batch = self.random.choice((self._batch_field, self._batch_bytes, self._new_batch))(old)
        if len(batch) > raw_batches.HEADER_SIZE and self.random.random() < 0.9:
            batch = raw_batches.with_right_crc(batch)
        return _with_records(frame, mark, batch)

    def _batch_field(self, old: bytes) -> bytes:
        """One field of the header."""
        fields = [(0, 8), (8, 4), (12, 4), (16, 1), (21, 2), (23, 4), (27, 8), (35, 8)]
        fields += [(43, 8), (51, 2), (53, 4), (57, 4)]
        start, size = self.random.choice(fields)
        if len(old) < start + size:
            return old
        value = struct.pack(FORMATS[size], self.random.choice(INT_EDGES[size]))
        return old[:start] + value + old[start + size :]

    def _batch_bytes(self, old: bytes) -> bytes:
        """Some bytes behind the header."""
        if len(old) <= raw_batches.HEADER_SIZE:
            return old
        changed = bytearray(old)
        for _ in range(self.random.randrange(1, 4)):
            position = self.random.randrange(raw_batches.HEADER_SIZE, len(changed))
            changed[position] = self.random.randrange(256)
        return bytes(changed)

    def _new_batch(self, old: bytes) -> bytes:
        """Records of many shapes in any codec."""
        source = self.random
        records = [
            raw_batches.Record(
                self._noise(source.choice((0, 1, 10, 500))),
                source.choice((None, b"", b"key", self._noise(20))),
                source.choice((0, 1, -1, 1000, -(10**12), 10**12)),
                source.choice((None, None, None, 0, 7, -1)),
                source.choice(((), ((b"h", None),), ((b"", b"x"), (b"y", b"")))),
            )
            for _ in range(source.randrange(5))
        ]
        codec = source.choice(tuple(raw_batches.CODECS))
        return raw_batches.batch(
            records,
            codec=codec,
            payload=self._noise(source.randrange(60)) if source.random() < 0.2 else None,
            attributes=source.choice((0, 0, 0, 8, 0x10, 0x20, 0x40)),
            producer_id=source.choice((-1, -1, 1, 5)),
            producer_epoch=source.choice((-1, 0, 0, 1)),
            base_sequence=source.choice((-1, 0, 0, 1, 5, 2**31 - 1)),
            base_timestamp=source.choice((None, None, -1, 0, 1 << 60)),
        )

    # Mutations that know nothing

    def _bits(self, frame: Frame) -> Frame | None:
        changed = bytearray(frame.data)
        for _ in range(self.random.choice((1, 1, 2, 8))):
            position = self.random.randrange(len(changed))
            changed[position] ^= 1 << self.random.randrange(8)
        return frame.replaced(bytes(changed), frame.marks)

    def _bytes(self, frame: Frame) -> Frame | None:
        changed = bytearray(frame.data)
        for _ in range(self.random.choice((1, 2, 4))):
            changed[self.random.randrange(len(changed))] = self.random.randrange(256)
        return frame.replaced(bytes(changed), frame.marks)

    def _size(self, frame: Frame) -> Frame | None:
        return self._wrong_length(frame, self._some(frame, "size"))

    def _count(self, frame: Frame) -> Frame | None:
        return self._wrong_length(frame, self._some(frame, "count", "tags"))

    def _wrong_length(self, frame: Frame, mark: Mark | None) -> Frame | None:
        if mark is None:
            return None
        size = mark.end - mark.start
        if size in (2, 4) and frame.data[mark.start] in (0, 255):
            edge = self.random.choice(INT_EDGES[size])
            return _replaced(frame, mark, struct.pack(FORMATS[size], edge))
        return _replaced(frame, mark, to_uvarint(self.random.choice(UVARINT_EDGES)))

    def _truncated(self, frame: Frame) -> Frame | None:
        return frame.replaced(frame.data[: self.random.randrange(len(frame.data))])

    def _splice(self, frame: Frame) -> Frame | None:
        """The beginning of one frame and the end of another."""
        other = self.random.choice(self.corpus)
        cut = self.random.choice(frame.marks).start if frame.marks else len(frame.data) // 2
        other_cut = self.random.choice(other.marks).start if other.marks else 0
        return frame.replaced(frame.data[:cut] + other.data[other_cut:])

    def _inserted(self, frame: Frame) -> Frame | None:
        position = self.random.randrange(len(frame.data) + 1)
        noise = self._noise(self.random.choice((1, 1, 2, 4, 100)))
        return frame.replaced(frame.data[:position] + noise + frame.data[position:])

    def _removed(self, frame: Frame) -> Frame | None:
        position = self.random.randrange(len(frame.data))
        size = self.random.choice((1, 1, 2, 4, 20))
        return frame.replaced(frame.data[:position] + frame.data[position + size :])

    def _version(self, frame: Frame) -> Frame | None:
        """The layout of one version under the number of another."""
        if len(frame.data) < 4:
            return None
        version = self.random.randrange(-1, 20)
        return frame.replaced(
            frame.data[:2] + struct.pack(">h", version) + frame.data[4:], frame.marks
        )

    def _noise(self, size: int) -> bytes:
        return self.random.randbytes(size)


def _replaced(frame: Frame, mark: Mark, value: bytes) -> Frame:
    """The frame with other bytes in one place; the marks behind it move along."""
    shift = len(value) - (mark.end - mark.start)
    data = frame.data[: mark.start] + value + frame.data[mark.end :]
    marks = tuple(_moved(one, mark, shift) for one in frame.marks) if shift else frame.marks
    return frame.replaced(data, marks)


def _moved(one: Mark, changed: Mark, shift: int) -> Mark:
    start = one.start + (shift if one.start >= changed.end else 0)
    end = one.end + (shift if one.end >= changed.end else 0)
    return Mark(one.kind, start, max(start, end))


def _with_records(frame: Frame, mark: Mark, batch: bytes) -> Frame | None:
    """The frame with another batch, and the size in front of it right."""
    sizes = [one for one in frame.marks if one.kind == "size" and one.end == mark.start]
    if not sizes:
        return None
    (size,) = sizes
    is_classic = size.end - size.start == 4
    length = struct.pack(">i", len(batch)) if is_classic else to_uvarint(len(batch) + 1)
    changed = _replaced(frame, mark, batch)
    return _replaced(changed, size, length)


def _from_uvarint(data: bytes) -> int:
    value = 0
    for place, byte in enumerate(data):
        value |= (byte & 0x7F) << (7 * place)
    return value


def make_corpus(place: Place, control: Control, port: int) -> list[Frame]:
    """Good requests of every API and version, and a few that real brokers were seen to send."""
    return [*every_request(place, control, port), *recorded_requests()]


@functools.cache
def recorded_requests() -> tuple[Frame, ...]:
    """Some of each recorded API; where their fields stand is not known."""
    frames: list[Frame] = []
    for api_key, name in RECORDED.items():
        rows = [json.loads(line) for line in (VECTORS / name).read_text().splitlines()]
        requests = [row for row in rows if row["side"] == "request"]
        for row in requests[:: len(requests) // RECORDED_PER_API][:RECORDED_PER_API]:
            frames.append(Frame(api_key, row["version"], bytes.fromhex(row["raw"])))
    return tuple(frames)
