"""What a broker was not told yet, in order and bounded: merged when it listens too slowly.

As long as few requests wait they leave as they were released. When more than `WAITING_MAX` wait,
they are merged: per partition the newest counts, what was new stays new and what was to be deleted
stays so (Q3). A deletion is never dropped and never overtaken: what is told of the partition after
it stays behind it.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from barnabas.core.controller.request_batch import (
    AnEntry,
    ControlRequest,
    LeaderAndIsrEntry,
    MetadataEntry,
    SendLeaderAndIsr,
    SendStopReplica,
    SendUpdateMetadata,
    StopReplicaEntry,
)
from barnabas.core.image.cluster_image import RegisteredBroker
from barnabas.model.ids import BrokerId, TopicId, TopicPartition

WAITING_MAX: Final = 32


class UnsentRequests:
    """One broker's queue."""

    def __init__(self) -> None:
        self._queue: deque[ControlRequest] = deque()

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, request: ControlRequest) -> None:
        """Queue a request; merge all that wait when they are too many."""
        self._queue.append(request)
        if len(self._queue) > WAITING_MAX:
            self._queue = deque(merge(self._queue))

    def take(self) -> ControlRequest | None:
        """The next request to send; None when nothing waits."""
        return self._queue.popleft() if self._queue else None

    def clear(self) -> None:
        self._queue.clear()


def merge(requests: Iterable[ControlRequest]) -> list[ControlRequest]:
    """The fewest requests that tell the same: one of each kind unless a deletion stands between."""
    merged: list[ControlRequest] = []
    group = _Group()
    for request in requests:
        if isinstance(request, SendLeaderAndIsr) and group.deletes_any(request.entries):
            merged.extend(group.requests())
            group = _Group()
        group.add(request)
    merged.extend(group.requests())
    return merged


class _Group:
    """Requests between two that must not be mixed."""

    def __init__(self) -> None:
        self._leader_and_isr: SendLeaderAndIsr | None = None
        self._update_metadata: SendUpdateMetadata | None = None
        self._stop_replica: SendStopReplica | None = None

    def deletes_any(self, entries: Iterable[LeaderAndIsrEntry]) -> bool:
        """Whether the group deletes a partition that is told of in these entries."""
        stopped = self._stop_replica.entries if self._stop_replica is not None else ()
        deleted = frozenset(one.partition for one in stopped if one.delete_partition)
        return any(entry.partition in deleted for entry in entries)

    def add(self, request: ControlRequest) -> None:
        match request:
            case SendLeaderAndIsr():
                self._add_leader_and_isr(request)
            case SendUpdateMetadata():
                self._add_update_metadata(request)
            case SendStopReplica():
                self._add_stop_replica(request)

    def requests(self) -> list[ControlRequest]:
        """What the group comes to, in the order of a flush."""
        in_order = (self._leader_and_isr, self._update_metadata, self._stop_replica)
        return [request for request in in_order if request is not None]

    def _add_leader_and_isr(self, request: SendLeaderAndIsr) -> None:
        told_again = frozenset(entry.partition for entry in request.entries)
        if self._stop_replica is not None:
            # Stopped and then told to go on: the stop, which deletes nothing, is out of date.
            kept = tuple(e for e in self._stop_replica.entries if e.partition not in told_again)
            self._stop_replica = replace(self._stop_replica, entries=kept) if kept else None
        earlier = self._leader_and_isr
        if earlier is None:
            self._leader_and_isr = request
            return
        entries: dict[TopicPartition, LeaderAndIsrEntry] = {e.partition: e for e in earlier.entries}
        for entry in request.entries:
            before = entries.get(entry.partition)
            is_new = entry.is_new or (before is not None and before.is_new)
            entries[entry.partition] = entry._replace(is_new=is_new)
        leaders = {broker.broker_id: broker for broker in earlier.live_leaders}
        leaders.update({broker.broker_id: broker for broker in request.live_leaders})
        self._leader_and_isr = replace(
            request,
            entries=_in_order(entries),
            topic_ids=_topic_ids(earlier.topic_ids, request.topic_ids),
            live_leaders=_leading(leaders, entries.values()),
        )

    def _add_update_metadata(self, request: SendUpdateMetadata) -> None:
        earlier = self._update_metadata
        if earlier is None:
            self._update_metadata = request
            return
        entries: dict[TopicPartition, MetadataEntry] = {e.partition: e for e in earlier.entries}
        entries.update({entry.partition: entry for entry in request.entries})
        self._update_metadata = replace(
            request,
            entries=_in_order(entries),
            topic_ids=_topic_ids(earlier.topic_ids, request.topic_ids),
        )

    def _add_stop_replica(self, request: SendStopReplica) -> None:
        earlier = self._stop_replica
        if earlier is None:
            self._stop_replica = request
            return
        entries: dict[TopicPartition, StopReplicaEntry] = {e.partition: e for e in earlier.entries}
        for entry in request.entries:
            before = entries.get(entry.partition)
            delete = entry.delete_partition or (before is not None and before.delete_partition)
            entries[entry.partition] = entry._replace(delete_partition=delete)
        self._stop_replica = replace(request, entries=_in_order(entries))


def _in_order(entries: dict[TopicPartition, AnEntry]) -> tuple[AnEntry, ...]:
    return tuple(entries[partition] for partition in sorted(entries))


def _topic_ids(earlier: dict[str, TopicId], later: dict[str, TopicId]) -> dict[str, TopicId]:
    return {**earlier, **later}


def _leading(
    leaders: dict[BrokerId, RegisteredBroker], entries: Iterable[LeaderAndIsrEntry]
) -> tuple[RegisteredBroker, ...]:
    """Those of the brokers that lead one of the entries (Q4)."""
    wanted = sorted({entry.state.leader for entry in entries})
    return tuple(leaders[leader] for leader in wanted if leader in leaders)
