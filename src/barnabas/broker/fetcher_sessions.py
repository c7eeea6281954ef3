"""The asking side of a fetch session (KIP-227): which changes to tell, what an answer means."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from barnabas.broker.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION, next_epoch
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import NO_TOPIC_ID, TopicId, TopicPartition

FIRST_VERSION_WITH_TOPIC_IDS: Final = 13


class AskedPartition(NamedTuple):
    """What a fetch says of one partition; told again only when it has changed."""

    topic_id: TopicId
    fetch_offset: int
    log_start_offset: int
    leader_epoch: int
    last_fetched_epoch: int


class FetchPlan(NamedTuple):
    """One fetch as it will be sent."""

    session_id: int
    session_epoch: int
    to_send: dict[TopicPartition, AskedPartition]
    to_forget: list[tuple[TopicPartition, TopicId]]
    uses_topic_ids: bool
    """Whether every partition in it has an id: else an older version must be spoken."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to fetch and nothing to take back."""
        return not self.to_send and not self.to_forget


class FetcherSession:
    """What one leader remembers of us, as far as we know."""

    def __init__(self) -> None:
        self._session_id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        self.partitions: dict[TopicPartition, AskedPartition] = {}
        """All partitions of the session; with the next answer the leader may speak of each."""

    def plan(self, wanted: dict[TopicPartition, AskedPartition]) -> FetchPlan:
        """The next fetch, when these partitions are to be fetched and no others."""
        uses_topic_ids = all(asked.topic_id != NO_TOPIC_ID for asked in wanted.values())
        if self._epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self.partitions = dict(wanted)
            return FetchPlan(self._session_id, self._epoch, dict(wanted), [], uses_topic_ids)
        to_send: dict[TopicPartition, AskedPartition] = {}
        to_forget: list[tuple[TopicPartition, TopicId]] = []
        replaced: list[tuple[TopicPartition, TopicId]] = []
        for key, known in list(self.partitions.items()):
            asked = wanted.get(key)
            if asked is None:
                del self.partitions[key]
                to_forget.append((key, known.topic_id))
                uses_topic_ids = uses_topic_ids and known.topic_id != NO_TOPIC_ID
            elif asked != known:
                if NO_TOPIC_ID not in (known.topic_id, asked.topic_id) and (
                    known.topic_id != asked.topic_id
                ):
                    replaced.append((key, known.topic_id))
                to_send[key] = asked
                self.partitions[key] = asked
        for key, asked in wanted.items():
            if key not in self.partitions:
                self.partitions[key] = to_send[key] = asked
        if uses_topic_ids:
            to_forget += replaced
        return FetchPlan(self._session_id, self._epoch, to_send, to_forget, uses_topic_ids)

    def note_answer(self, error: int, session_id: int, named: Iterable[TopicPartition]) -> bool:
        """Take up what an answer says of the session; whether its partitions may be used."""
        if error != ErrorCode.NONE:
            self._epoch = INITIAL_EPOCH
            if error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self._session_id = NO_SESSION
            return False
        is_full = self._epoch in (INITIAL_EPOCH, FINAL_EPOCH)
        told = set(named)
        is_sound = told <= self.partitions.keys()
        if is_full:
            is_sound = is_sound and len(told) == len(self.partitions)
        if not is_sound:
            self._epoch = INITIAL_EPOCH
            if is_full:
                self._session_id = NO_SESSION
            return False
        if session_id == NO_SESSION:
            self._session_id, self._epoch = NO_SESSION, INITIAL_EPOCH
        elif is_full:
            self._session_id, self._epoch = session_id, next_epoch(INITIAL_EPOCH)
        else:
            self._epoch = next_epoch(self._epoch)
        return True

    def note_lost(self) -> None:
        """No answer came: end the old session with the next fetch, and ask for a new one."""
        self._epoch = INITIAL_EPOCH
