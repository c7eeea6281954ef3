"""What the records of a partition add up to: groups and offsets, in the order of the log."""

from collections.abc import Iterable

from barnabas.core.coordinator.group.group import Group
from barnabas.core.coordinator.outcome import CoordinatorRecord
from barnabas.formats.internal_topics.consumer_offsets import (
    CommittedOffset,
    GroupMetadata,
    OffsetKey,
    UnknownKey,
    decode_committed_offset,
    decode_group_metadata,
    decode_key,
)
from barnabas.model.errors import DecodeError
from barnabas.model.ids import TopicPartition

NO_PRODUCER = -1


class LoadedPartition:
    """Takes records until the log ends; one that cannot be read is left out and counted."""

    def __init__(self) -> None:
        self.ignored_records = 0
        self.first_ignored = ""
        """Why the first of them was left out."""
        self._offsets: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        self._groups: dict[str, GroupMetadata] = {}
        self._transactions: dict[int, dict[OffsetKey, CommittedOffset | None]] = {}
        """By producer id: what counts once its transaction is committed."""

    def take(self, records: Iterable[CoordinatorRecord], producer_id: int = NO_PRODUCER) -> None:
        """The records of one batch; with the producer id of a transaction if it is part of one."""
        for record in records:
            try:
                self._take(record, producer_id)
            except DecodeError as error:
                self._ignore(str(error))

    def take_marker(self, producer_id: int, *, is_commit: bool) -> None:
        """The end of a transaction."""
        offsets = self._transactions.pop(producer_id, {})
        if is_commit:
            for key, offset in offsets.items():
                self._set_offset(key, offset)

    def groups(self) -> Iterable[Group]:
        """What it adds up to; to be asked once."""
        for group_id, metadata in self._groups.items():
            try:
                group = Group.loaded(group_id, metadata)
            except DecodeError as error:
                self._ignore(str(error))
                continue
            group.offsets.committed = self._offsets.pop(group_id, {})
            yield group
        for group_id, offsets in self._offsets.items():
            if offsets:
                group = Group.loaded(group_id, GroupMetadata("", 0, None, None, -1, ()))
                group.offsets.committed = offsets
                yield group
        self._groups.clear()
        self._offsets.clear()
        self._transactions.clear()

    def _take(self, record: CoordinatorRecord, producer_id: int) -> None:
        key = decode_key(record.key)
        if isinstance(key, UnknownKey):
            self._ignore(f"a key of version {key.version}")
        elif isinstance(key, OffsetKey):
            offset = None if record.value is None else decode_committed_offset(record.value)
            if producer_id == NO_PRODUCER:
                self._set_offset(key, offset)
            else:
                self._transactions.setdefault(producer_id, {})[key] = offset
        elif record.value is None:
            self._groups.pop(key.group_id, None)
        else:
            metadata = decode_group_metadata(record.value)
            self._groups.pop(key.group_id, None)
            self._groups[key.group_id] = metadata

    def _set_offset(self, key: OffsetKey, offset: CommittedOffset | None) -> None:
        offsets = self._offsets.setdefault(key.group_id, {})
        if offset is None:
            offsets.pop(key.partition, None)
        else:
            offsets[key.partition] = offset

    def _ignore(self, reason: str) -> None:
        self.ignored_records += 1
        self.first_ignored = self.first_ignored or reason
