"""Notation for messages whose fields come and go with versions.

A schema module under formats/wire/apis says what is on the wire; tools/generate_codec.py turns it
into plain functions. Nothing here is imported by a running broker.

    LEADER = Struct(
        "LeaderIdAndEpoch",
        Field("leader_id", BROKER_ID, default=-1),
        Field("leader_epoch", LEADER_EPOCH, default=-1),
    )

Versions are written as in Kafka's own definitions: "3" is one version, "0-2" a range, "4+" open.
A field says in which versions it is there (all of them unless said), in which of those it may be
null, whether it travels as a tagged field (`tag`), the value that stands for absence (`default`;
zero, empty or, for records, null unless said), and whether a value may be dropped when it is
encoded for a version that has no place for it (`ignorable`); a value that may not be dropped is a
bug of the caller and raises.

A Struct that is the type of a field itself, not of an array, becomes an immutable tuple type, so
that every message can share one default; its fields are therefore numbers, strings and bytes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from barnabas.model.invariant import invariant

_OPEN = 32767
"""The last version of an open range: the version number is an int16."""


@dataclass(frozen=True, slots=True)
class Versions:
    """A closed range of versions; empty when `first` is above `last`."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> "Versions":
        """From "3", "0-2", "4+" or "none"."""
        if text == "none":
            return cls(0, -1)
        if text.endswith("+"):
            return cls(int(text[:-1]), _OPEN)
        first, _, last = text.partition("-")
        return cls(int(first), int(last or first))

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.first, self.last + 1))

    def within(self, outer: "Versions") -> "Versions":
        """The versions that are in both."""
        return Versions(max(self.first, outer.first), min(self.last, outer.last))


class Kind(Enum):
    """How a value that is neither struct nor array is written."""

    BOOL = "bool"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UUID = "uuid"
    STRING = "string"
    BYTES = "bytes"
    RECORDS = "records"


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value; `meaning` is the NewType of barnabas.model that it is read as."""

    kind: Kind
    meaning: str | None = None


@dataclass(frozen=True, slots=True)
class Array:
    """A count and that many elements."""

    element: "Scalar | Struct"


class Absent(Enum):
    """The default of a field that names none: the zero of its type."""

    ZERO = 0


ZERO = Absent.ZERO
Default = int | str | bool | None | Absent


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct; `Kafka`'s name in snake case."""

    name: str
    type: "Scalar | Array | Struct"
    versions: str = "0+"
    nullable: str = "none"
    tag: int | None = None
    default: Default = ZERO
    ignorable: bool = False

    def is_in(self, version: int) -> bool:
        return version in Versions.parse(self.versions)

    def is_nullable_in(self, version: int) -> bool:
        return version in Versions.parse(self.nullable)


class Struct:
    """Fields under a name, in the order of the wire."""

    def __init__(self, name: str, *fields: Field) -> None:
        names = [field.name for field in fields]
        invariant(len(names) == len(set(names)), f"{name}: a field stands twice")
        self.name = name
        self.fields = fields

    def __repr__(self) -> str:
        return f"Struct({self.name!r})"


@dataclass(frozen=True, slots=True)
class Api:
    """A request and its response, with the versions of both and the first flexible one."""

    key: int
    name: str
    versions: str
    flexible: str
    request: Struct
    response: Struct

    def is_flexible_in(self, version: int) -> bool:
        """Whether this version has compact lengths and tagged fields."""
        return version in Versions.parse(self.flexible)

    @property
    def version_range(self) -> Versions:
        return Versions.parse(self.versions)


BOOL = Scalar(Kind.BOOL)
INT8 = Scalar(Kind.INT8)
INT16 = Scalar(Kind.INT16)
INT32 = Scalar(Kind.INT32)
INT64 = Scalar(Kind.INT64)
UUID = Scalar(Kind.UUID)
STRING = Scalar(Kind.STRING)
BYTES = Scalar(Kind.BYTES)
RECORDS = Scalar(Kind.RECORDS)

BROKER_ID = Scalar(Kind.INT32, "BrokerId")
TOPIC_ID = Scalar(Kind.UUID, "TopicId")
PRODUCER_ID = Scalar(Kind.INT64, "ProducerId")
LEADER_EPOCH = Scalar(Kind.INT32, "LeaderEpoch")
PARTITION_EPOCH = Scalar(Kind.INT32, "PartitionEpoch")
CONTROLLER_EPOCH = Scalar(Kind.INT32, "ControllerEpoch")
BROKER_EPOCH = Scalar(Kind.INT64, "BrokerEpoch")
