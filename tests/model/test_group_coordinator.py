"""Members come, work and go at random while writes are lost and the coordinator is killed."""

import random
from collections import defaultdict

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from barnabas.core.coordinator.group.group_states import GroupState
from barnabas.core.coordinator.group.requests import (
    JoinResult,
    SyncResult,
)
from barnabas.core.coordinator.group.settings import GroupSettings
from barnabas.core.coordinator.shard import GroupShard
from barnabas.formats.internal_topics.consumer_offsets import (
    OffsetKey,
    decode_committed_offset,
    decode_key,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from tests.worlds.group_world import RANGE, GroupWorld

GROUPS = ("g", "h")
PARTITIONS = tuple(TopicPartition(topic, number) for topic in "tu" for number in (0, 1))
INSTANCES = (None, None, None, "i", "j")
LOSSES = (
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.MESSAGE_TOO_LARGE,
)
groups = st.sampled_from(("g", "g", "g", "h"))
numbers = st.integers(0, 1_000_000)


class GroupLife(RuleBasedStateMachine):
    """What holds at any moment is an invariant below; that nobody waits for ever, the teardown."""

    @initialize(
        delay=st.sampled_from([0, 3_000]),
        members_max=st.sampled_from([2, 1_000]),
        at_once=st.booleans(),
    )
    def begin(self, delay: int, members_max: int, at_once: bool) -> None:
        settings = GroupSettings(
            initial_delay_ms=delay,
            members_max=members_max,
            offsets_retention_ms=1_200_000,
            # Batches of tombstones are half of this: they are cut in several.
            message_size_max=160,
        )
        self.world = GroupWorld(settings, replicates=at_once)
        self.open: dict[object, str] = {}
        """Who waits, and for what; nobody does across a kill."""
        self.joins: dict[object, tuple[str, str | None]] = {}
        self.members: dict[str, list[tuple[JoinResult, str | None]]] = defaultdict(list)
        """Whoever was told that it is a member, whether that still holds or not."""
        self.given_ids: dict[str, list[str]] = defaultdict(list)
        self.syncs: dict[object, tuple[str, int]] = {}
        self.assigners: dict[tuple[str, int, int], int] = {}
        """Which SyncGroup the assignments of a generation come from; none ever has two."""
        self.lives: dict[str, int] = defaultdict(int)
        """How often a group began from nothing."""
        self.generations: dict[str, int] = {}
        self.sync_number = 0

    def note(self, waiter: object, what: str) -> None:
        self.open[waiter] = what
        self.hear()

    def hear(self) -> None:
        """Take note of all answers that came."""
        for waiter in [waiter for waiter in self.open if waiter in self.world.answers]:
            del self.open[waiter]
            result = self.world.answers[waiter]
            if isinstance(result, JoinResult):
                group_id, instance = self.joins.pop(waiter)
                if result.error is ErrorCode.NONE:
                    self.members[group_id].append((result, instance))
                elif result.error is ErrorCode.MEMBER_ID_REQUIRED:
                    self.given_ids[group_id].append(result.member_id)
            elif isinstance(result, SyncResult):
                group_id, generation = self.syncs.pop(waiter)
                if result.assignment:
                    self.check_assigner(group_id, generation, result.assignment)

    def check_assigner(self, group_id: str, generation: int, assignment: bytes) -> None:
        """T7: what members of one generation own was cut up by one and the same leader."""
        key = group_id, self.lives[group_id], generation
        number = int(assignment)
        assert self.assigners.setdefault(key, number) == number

    def known(self, group_id: str, number: int) -> tuple[JoinResult, str | None] | None:
        """Rather one of the last ones than one of old."""
        members = self.members[group_id][-5:]
        return members[number % len(members)] if members else None

    # -- what happens ----------------------------------------------------------------------------

    @rule(
        group_id=groups,
        instance=st.sampled_from(INSTANCES),
        version=st.sampled_from([3, 4, 9]),
        protocols=st.sampled_from([RANGE, RANGE, (*RANGE, *RANGE)]),
    )
    def join(self, group_id: str, instance: str | None, version: int, protocols: tuple) -> None:
        waiter = self.world.ask_join(
            group_id, instance=instance, version=version, protocols=protocols
        )
        self.joins[waiter] = group_id, instance
        self.note(waiter, "join")

    @rule(group_id=groups, number=numbers)
    def join_with_given_id(self, group_id: str, number: int) -> None:
        given = self.given_ids[group_id][-3:]
        if given:
            waiter = self.world.ask_join(group_id, member_id=given[number % len(given)], version=4)
            self.joins[waiter] = group_id, None
            self.note(waiter, "join")

    @rule(group_id=groups, number=numbers)
    def join_again(self, group_id: str, number: int) -> None:
        member = self.known(group_id, number)
        if member:
            self.rejoin(group_id, *member)

    @rule(group_id=groups, number=numbers)
    def sync(self, group_id: str, number: int) -> None:
        member = self.known(group_id, number)
        if member:
            result, instance = member
            self.sync_number += 1
            told = {
                other.member_id: str(self.sync_number).encode()
                for other, _ in self.members[group_id]
            }
            # The request has its number before it is answered.
            waiter = f"waiter {self.world._waiters + 1}"
            self.syncs[waiter] = group_id, result.generation_id
            assert waiter == self.world.ask_sync(result, told, group_id=group_id, instance=instance)
            self.note(waiter, "sync")

    @rule(
        group_id=groups,
        new=st.lists(st.sampled_from(INSTANCES), max_size=3),
        rounds=st.integers(1, 3),
        loses=st.booleans(),
    )
    def settle(self, group_id: str, new: list[str | None], rounds: int, loses: bool) -> None:
        """What well-behaved members do; without it few groups would get stable."""
        for instance in new:
            self.join(group_id, instance, 9 if instance else 3, RANGE)
        for _ in range(rounds):
            self.world.replicate()
            self.world.advance(3_000)
            self.hear()
            for result, instance in self.members[group_id][-5:]:
                code = self.world.heartbeat(result, group_id, instance)
                if code is ErrorCode.REBALANCE_IN_PROGRESS:
                    self.rejoin(group_id, result, instance)
            for number in range(5):
                self.sync(group_id, number)
        if loses and self.world.writes:
            self.world.lose()
        else:
            self.world.replicate()

    def rejoin(self, group_id: str, result: JoinResult, instance: str | None) -> None:
        waiter = self.world.ask_join(group_id, member_id=result.member_id, instance=instance)
        self.joins[waiter] = group_id, instance
        self.note(waiter, "join")

    @rule(group_id=groups, number=numbers)
    def heartbeat(self, group_id: str, number: int) -> None:
        member = self.known(group_id, number)
        if member:
            self.world.heartbeat(member[0], group_id, member[1])

    @rule(group_id=groups, number=numbers, by_instance=st.booleans())
    def leave(self, group_id: str, number: int, by_instance: bool) -> None:
        member = self.known(group_id, number)
        if member:
            result, instance = member
            gone = "" if by_instance and instance else result.member_id
            self.world.leave((gone, instance), group_id=group_id)

    @rule(
        group_id=groups,
        number=numbers,
        is_member=st.booleans(),
        partitions=st.sets(st.sampled_from(PARTITIONS), min_size=1),
        offset=st.integers(0, 100),
    )
    def commit(
        self,
        group_id: str,
        number: int,
        is_member: bool,
        partitions: set[TopicPartition],
        offset: int,
    ) -> None:
        member = self.known(group_id, number) if is_member else None
        waiter = self.world.ask_commit(
            dict.fromkeys(sorted(partitions), offset),
            member[0] if member else None,
            group_id=group_id,
            instance=member[1] if member else None,
        )
        self.note(waiter, "commit")

    @rule(
        what=st.sampled_from(["offsets", "groups", "topic", "kill", "kill", "resign"]),
        group_id=groups,
        partitions=st.sets(st.sampled_from(PARTITIONS), min_size=1),
        count=st.integers(0, 3),
    )
    def disturb(
        self, what: str, group_id: str, partitions: set[TopicPartition], count: int
    ) -> None:
        """What is rarer than the rest."""
        match what:
            case "offsets":
                self.delete_offsets(group_id, partitions)
            case "groups":
                self.delete_groups({group_id, GROUPS[count % 2]})
            case "topic":
                self.delete_topic("tu"[count % 2])
            case "kill":
                self.kill(count)
            case _:
                self.resign_and_return()

    def delete_offsets(self, group_id: str, partitions: set[TopicPartition]) -> None:
        world = self.world
        waiter = world.waiter()
        told = tuple(sorted(partitions))
        world.take(world.shard.delete_offsets(group_id, told, waiter, world.now_ms))
        self.note(waiter, "delete offsets")

    def delete_groups(self, group_ids: set[str]) -> None:
        world = self.world
        waiter = world.waiter()
        world.take(world.shard.delete_groups(sorted(group_ids), waiter, world.now_ms))
        self.note(waiter, "delete groups")

    def delete_topic(self, topic: str) -> None:
        world = self.world
        gone = [partition for partition in PARTITIONS if partition.topic == topic]
        world.take(world.shard.delete_topic_offsets(gone, world.now_ms))

    @rule(milliseconds=st.sampled_from([1, 3_000, 3_000, 9_000, 30_000, 700_000]))
    def advance(self, milliseconds: int) -> None:
        self.world.advance(milliseconds)

    @rule(count=st.integers(1, 5))
    def replicate(self, count: int) -> None:
        self.world.replicate(count)

    @rule(error=st.sampled_from(LOSSES))
    def lose(self, error: ErrorCode) -> None:
        if self.world.writes:
            self.world.lose(error)

    def kill(self, count: int) -> None:
        """Some of what was on its way is in the log; nobody was told so."""
        for write in list(self.world.writes)[:count]:
            self.world.log += write.records
        self.open.clear()
        self.joins.clear()
        self.syncs.clear()
        self.world.reload()
        self.generations.clear()

    def resign_and_return(self) -> None:
        """Another broker leads for a moment: whoever waits is told at once or with its write."""
        world = self.world
        world.take(world.shard.resign(world.now_ms))
        while world.writes:
            world.lose(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.hear()
        assert not self.open, self.open
        world.reload()
        self.generations.clear()

    # -- what holds ------------------------------------------------------------------------------

    def live(self) -> dict:
        return self.world.shard._groups

    @invariant()
    def generations_grow(self) -> None:
        self.hear()
        for group_id in GROUPS:
            group = self.live().get(group_id)
            if group is None:
                self.lives[group_id] += 1
                self.generations.pop(group_id, None)
                continue
            assert group.generation_id >= self.generations.get(group_id, 0)
            self.generations[group_id] = group.generation_id

    def reloaded(self) -> GroupShard:
        shard = GroupShard(self.world.settings, random.Random(0), self.world.epoch_ms)
        shard.load(self.world.log)
        shard.finish_loading(self.world.now_ms)
        assert shard.ignored_records == (0, "")
        return shard

    @invariant()
    def log_and_memory_agree(self) -> None:
        """T4: offsets are those of the log; a stable generation is the one that was written."""
        other = self.reloaded()
        for group_id in GROUPS:
            assert self.world.committed(group_id) == other_committed(other, group_id)
            group = self.live().get(group_id)
            written = other._groups.get(group_id)
            if group is None:
                assert written is None
            elif group.state is GroupState.STABLE:
                assert self.world.shard.describe(group_id) == other.describe(group_id)
                assert (written.generation_id, written.leader_id) == (
                    group.generation_id,
                    group.leader_id,
                )
            elif written is not None:
                assert written.generation_id <= group.generation_id

    @invariant()
    def last_words_count(self) -> None:
        """T4 once more, from the records alone: the last one of a key is what holds."""
        last: dict[OffsetKey, int] = {}
        for record in self.world.log:
            key = decode_key(record.key)
            if isinstance(key, OffsetKey):
                last.pop(key, None)
                if record.value is not None:
                    last[key] = decode_committed_offset(record.value).offset
        for group_id in GROUPS:
            expected = {key.partition: value for key, value in last.items() if key[0] == group_id}
            assert self.world.committed(group_id) == expected

    @invariant()
    def books_add_up(self) -> None:
        for group in self.live().values():
            waiting = [m for m in group.members.values() if m.join_waiter is not None]
            assert group.awaiting_join_count == len(waiting)
            if waiting:
                assert group.state is GroupState.PREPARING_REBALANCE
            if any(m.sync_waiter is not None for m in group.members.values()):
                assert group.state is GroupState.COMPLETING_REBALANCE
            assert (group.state is GroupState.EMPTY) <= (not group.members)
            assert group.leader_id is None or group.leader_id in group.members
            assert set(group.static_members.values()) <= set(group.members)
            assert set(group.pending_sync) <= set(group.members)

    def teardown(self) -> None:
        """Everybody who still waits is answered in the end, and only once."""
        if not hasattr(self, "world"):
            return
        world = self.world
        world.replicates = True
        world.replicate()
        world.advance(1_000_000)
        self.hear()
        assert not self.open, self.open
        world.advance(5_000_000)
        assert not world.shard._groups, "everything expires when nobody is there"
        assert not self.reloaded()._groups


def other_committed(shard: GroupShard, group_id: str) -> dict[TopicPartition, int]:
    fetched = shard.fetch_offsets(group_id, None).offsets
    return {partition: value.offset for partition, value in fetched.items()}


TestGroupLife = GroupLife.TestCase
