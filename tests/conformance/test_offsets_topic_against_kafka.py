"""Records of __consumer_offsets are Kafka's: it reads ours and writes the same, and the reverse."""

import base64
import random
import subprocess

from barnabas.core.coordinator.partitions import coordinator_partition
from barnabas.formats.internal_topics.consumer_offsets import (
    CommittedOffset,
    GroupKey,
    GroupMetadata,
    MemberMetadata,
    OffsetKey,
    decode_committed_offset,
    decode_group_metadata,
    decode_key,
    encode_committed_offset,
    encode_group_key,
    encode_group_metadata,
    encode_offset_key,
)
from barnabas.model.ids import TopicPartition
from tests.tools import ROOT, java_command, need

SOURCE = ROOT / "tests" / "oracles" / "OffsetsTopicRecords.java"
CASES = 300

Case = tuple[str, int, bytes]


def answers_of_kafka(cases: list[Case]) -> list[str]:
    need("java")
    lines = [f"{kind} {number} {base64.b64encode(data).decode()}" for kind, number, data in cases]
    finished = subprocess.run(
        java_command(SOURCE),
        input="\n".join(lines),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr[-2000:]
    answers = finished.stdout.splitlines()
    assert len(answers) == len(cases)
    return answers


def rewritten(cases: list[Case]) -> list[bytes]:
    return [base64.b64decode(answer) for answer in answers_of_kafka(cases)]


class Values:
    """Values of every kind, some of them odd, all from one seed."""

    def __init__(self) -> None:
        self.source = random.Random(7)

    def text(self) -> str:
        pieces = ["", "a", "group", "\u00e9", "\u4e16\u754c", "\U0001f600", "-", "0", "x" * 200]
        return "".join(self.source.choices(pieces, k=self.source.randint(0, 4)))

    def number(self, bits: int) -> int:
        edge = 1 << (bits - 1)
        return self.source.choice([0, 1, -1, edge - 1, -edge, self.source.randrange(edge)])

    def octets(self) -> bytes:
        return self.source.randbytes(self.source.choice([0, 1, 7, 300]))

    def offset_key(self) -> OffsetKey:
        return OffsetKey(self.text(), TopicPartition(self.text(), self.number(32)))

    def offset(self) -> CommittedOffset:
        expire = self.source.choice([-1, -1, self.source.randrange(1 << 45)])
        # A record with an expiry of its own has no place for the epoch.
        epoch = -1 if expire != -1 else self.number(32)
        return CommittedOffset(self.number(64), epoch, self.text(), self.number(64), expire)

    def group(self, member_count: int) -> GroupMetadata:
        members = tuple(
            MemberMetadata(
                f"{number}-{self.text()}",
                self.source.choice([None, f"i{number}{self.text()}"]),
                self.text(),
                self.text(),
                self.number(32),
                self.number(32),
                self.octets(),
                self.octets(),
            )
            for number in range(member_count)
        )
        return GroupMetadata(
            self.source.choice(["consumer", self.text()]),
            self.number(32),
            self.source.choice([self.text() + "p", None if not members else "range"]),
            self.source.choice([members[0].member_id if members else None]),
            self.number(64),
            members,
        )


def test_what_is_written_is_what_the_coordinator_of_kafka_would_write():
    values = Values()
    cases: list[Case] = []
    for number in range(CASES):
        cases += [
            ("offset-key", 0, encode_offset_key(values.offset_key())),
            ("group-key", 0, encode_group_key(GroupKey(values.text()))),
            ("offset", 0, encode_committed_offset(values.offset())),
            ("group", 0, encode_group_metadata(loadable(values.group(number % 2)))),
            ("group-as", 3, encode_group_metadata(values.group(values.source.randint(0, 5)))),
        ]
    for case, theirs in zip(cases, rewritten(cases), strict=True):
        assert theirs == case[2], case


def loadable(group: GroupMetadata) -> GroupMetadata:
    """What the coordinator takes up unchanged: of more members than one it keeps no order.

    It throws on a consumer's subscription that is none, so the group is one of another kind.
    """
    return group._replace(protocol_type="connect")


def test_every_version_that_kafka_can_write_is_read():
    values = Values()
    cases: list[Case] = []
    expected: list[object] = []
    for _ in range(CASES):
        key = values.offset_key()
        for version in (0, 1):
            cases.append(("offset-key-as", version, encode_offset_key(key)))
            expected.append(key)
        offset = values.offset()._replace(expire_timestamp=-1)
        for version in range(5):
            kept = offset if version >= 3 else offset._replace(leader_epoch=-1)
            cases.append(("offset-as", version, encode_committed_offset(offset)))
            expected.append(kept)
        group = values.group(values.source.randint(0, 4))
        for version in range(5):
            cases.append(("group-as", version, encode_group_metadata(group)))
            expected.append(as_of(group, version))
    readers = {
        "offset-key-as": decode_key,
        "offset-as": decode_committed_offset,
        "group-as": decode_group_metadata,
    }
    for case, theirs, value in zip(cases, rewritten(cases), expected, strict=True):
        assert readers[case[0]](theirs) == value, case


def as_of(group: GroupMetadata, version: int) -> GroupMetadata:
    """What is left of it in an older version."""
    members = tuple(
        member._replace(
            group_instance_id=member.group_instance_id if version >= 3 else None,
            rebalance_timeout_ms=(
                member.rebalance_timeout_ms if version >= 1 else member.session_timeout_ms
            ),
        )
        for member in group.members
    )
    timestamp = group.state_timestamp if version >= 2 else -1
    return group._replace(members=members, state_timestamp=timestamp)


def test_groups_belong_to_the_partition_that_kafka_gives_them():
    values = Values()
    # The hash of the first is the one number whose absolute value has no place in an int.
    names = ["polygenelubricants", "", "g", *(values.text() for _ in range(CASES))]
    cases: list[Case] = [
        ("partition", count, name.encode()) for name in names for count in (1, 3, 50)
    ]
    ours = [coordinator_partition(name, count) for name in names for count in (1, 3, 50)]
    assert [int(answer) for answer in answers_of_kafka(cases)] == ours
