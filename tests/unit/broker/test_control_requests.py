"""What control requests do to a broker: roles, logs, who waits, what is told."""

from typing import Any

import pytest

from barnabas.broker.event_stream import ControlRequestBegan, ControlRequestEnded
from barnabas.broker.topic_configs import TopicConfigUnreadable
from barnabas.core.replication.follower_states import FollowerState
from barnabas.formats.logdir.partition_metadata import encode_partition_metadata
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.generated.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicState,
)
from barnabas.formats.wire.generated.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaPartitionV0,
    StopReplicaRequest,
    StopReplicaTopicState,
    StopReplicaTopicV1,
)
from barnabas.formats.znodes.configs import config_path, config_to_bytes, topic_entity
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import DiskLost
from barnabas.model.ids import NO_TOPIC_ID, BrokerId, TopicId, TopicPartition
from barnabas.storage.flush_queue import LOGS_PER_JOB_MAX
from tests.behaviours import behaviour
from tests.worlds.memory_disk import Fault
from tests.worlds.requests import batch, produce_request, produced
from tests.worlds.virtual_world import LOG_DIR, VirtualWorld, plan

ID = TopicId(b"\x05" * 16)
T0 = TopicPartition("t", 0)


class OneBroker(VirtualWorld):
    def __init__(self, **settings: str) -> None:
        super().__init__()
        self.host = self.add_broker(1, **settings)
        self.broker = self.host.broker
        self.tell_metadata(1, "t", ID, {0: plan(1, 0, (1,), (1,))}, [1, 2])

    def lead(self, leader_epoch: int = 0, topic: str = "t", topic_id: TopicId = ID) -> int:
        """Let broker 1 lead partition 0 alone; the error it answers."""
        decision = {0: plan(1, leader_epoch, (1,), (1,))}
        response = self.tell_leader(1, topic, topic_id, decision, is_new=leader_epoch == 0)
        return response.topics[0].partition_errors[0].error_code

    def follow(self, leader_epoch: int, leader: int = 2) -> int:
        response = self.tell_leader(1, "t", ID, {0: plan(leader, leader_epoch, (leader,))})
        return response.topics[0].partition_errors[0].error_code

    def stop(self, *, is_deletion: bool, leader_epoch: int = -2, topic: str = "t") -> int:
        body = StopReplicaRequest(
            controller_id=BrokerId(1),
            controller_epoch=self.controller_epoch,
            topic_states=[
                StopReplicaTopicState(
                    topic_name=topic,
                    partition_states=[
                        StopReplicaPartitionState(
                            partition_index=0,
                            leader_epoch=leader_epoch,
                            delete_partition=is_deletion,
                        )
                    ],
                )
            ],
        )
        answer = self.client(1).call(ApiKey.STOP_REPLICA, 4, body)
        assert answer.error_code == 0
        return answer.partition_errors[0].error_code

    def files(self) -> list[str]:
        return sorted({path.split("/")[0] for path in self.host.disk.snapshot(LOG_DIR)})


@pytest.fixture
def world() -> OneBroker:
    return OneBroker()


class TestLeaderAndIsr:
    @behaviour("L15")
    def test_a_new_leader_notes_its_epoch_in_the_log_before_anything_is_appended(
        self, world: OneBroker
    ) -> None:
        assert world.lead() == ErrorCode.NONE
        partition = world.broker.replicas.find("t", 0)
        assert partition is not None
        assert partition.is_leader
        assert partition.log is not None
        assert [tuple(e) for e in partition.log.leader_epochs.entries()] == [(0, 0)]
        assert partition.log.topic_id == ID

    @behaviour("L22")
    def test_an_epoch_at_the_same_offset_replaces_the_one_before(self, world: OneBroker) -> None:
        world.lead()
        world.lead(3)
        log = world.broker.logs.log(T0)
        assert log is not None
        assert [tuple(e) for e in log.leader_epochs.entries()] == [(3, 0)]

    @behaviour("L15", "L23")
    def test_the_watermark_of_a_replica_starts_from_the_checkpoint(self, world: OneBroker) -> None:
        world.lead()
        body = produce_request("t", {0: batch([b"a", b"b", b"c"])})
        assert produced(world.client(1).call(ApiKey.PRODUCE, 11, body)).base_offset == 0
        world.run(5000)
        checkpoint = world.host.disk.snapshot(LOG_DIR)["replication-offset-checkpoint"]
        assert checkpoint == b"0\n1\nt 0 3\n"
        world.host.kill()
        world.host.start()
        log = world.host.broker.logs.log(T0)
        assert log is not None
        assert log.high_watermark == 3

    @behaviour("L15")
    def test_who_waits_for_a_follower_is_answered_when_the_new_epoch_has_none(
        self, world: OneBroker
    ) -> None:
        world.tell_leader(1, "t", ID, {0: plan(1, 0, (1, 2), (1, 2))}, is_new=True)
        client = world.client(1)
        number = client.send(ApiKey.PRODUCE, 11, produce_request("t", {0: batch([b"a"])}))
        world.run(10)
        log = world.broker.logs.log(T0)
        assert log is not None
        assert (log.high_watermark, number in client.answers) == (0, False)
        world.tell_leader(1, "t", ID, {0: plan(1, 1, (1,), (1,))})
        assert log.high_watermark == 1
        assert produced(client.answers[number]).error_code == ErrorCode.NONE

    @behaviour("L18")
    def test_without_a_live_leader_the_log_is_made_and_the_epoch_not_noted(
        self, world: OneBroker
    ) -> None:
        assert world.follow(4, leader=77) == ErrorCode.NONE
        assert "t-0" in world.files()
        partition = world.broker.replicas.find("t", 0)
        assert partition is not None
        assert partition.leader_epoch == -1
        assert world.follow(4) == ErrorCode.NONE
        assert partition.leader_epoch == 4

    @behaviour("L12", "L20", "F1")
    def test_a_follower_fetches_from_the_leader_it_was_told(self, world: OneBroker) -> None:
        world.lead()
        assert world.broker.fetchers.follower(T0) is None
        world.follow(1)
        follower = world.broker.fetchers.follower(T0)
        assert follower is not None
        assert (follower.leader_id, follower.leader_epoch) == (2, 1)
        world.lead(2)
        assert world.broker.fetchers.follower(T0) is None
        assert follower.state is FollowerState.STOPPED

    @behaviour("F2", "L20")
    def test_from_the_moment_it_follows_a_replica_refuses_produce_and_has_written_all(
        self, world: OneBroker
    ) -> None:
        """A produce and the LeaderAndIsr behind it in one turn: nothing is appended after it."""
        world.lead()
        client = world.client(1)
        first = client.send(ApiKey.PRODUCE, 11, produce_request("t", {0: batch([b"a"])}, acks=1))
        lead = LeaderAndIsrRequest(
            controller_epoch=1,
            topic_states=[
                LeaderAndIsrTopicState(
                    topic_name="t",
                    topic_id=ID,
                    partition_states=[
                        LeaderAndIsrPartitionState(
                            leader=2, leader_epoch=1, isr=[2], replicas=[1, 2], partition_epoch=1
                        )
                    ],
                )
            ],
        )
        client.send(ApiKey.LEADER_AND_ISR, 7, lead)
        last = client.send(ApiKey.PRODUCE, 11, produce_request("t", {0: batch([b"b"])}, acks=1))
        world.run(10)
        assert produced(client.answers[first]).error_code == ErrorCode.NONE
        assert produced(client.answers[last]).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        log = world.broker.logs.log(T0)
        assert log is not None
        assert log.log_end_offset == 1
        assert log.files.disk.size(log.active_segment.file()) > 0

    @behaviour("L20")
    def test_a_broker_that_stops_follows_nobody_any_more(self, world: OneBroker) -> None:
        world.broker.is_stopping = True
        assert world.follow(1) == ErrorCode.NONE
        assert world.broker.fetchers.follower(T0) is None

    @behaviour("L17")
    def test_replicas_that_are_assigned_anew_are_counted_and_removed_ones_forgotten(
        self, world: OneBroker
    ) -> None:
        world.tell_leader(1, "t", ID, {0: plan(1, 0, (1, 2), (1, 2))}, is_new=True)
        world.tell_leader(1, "t", ID, {0: plan(1, 1, (1, 2), (1, 2, 3))})
        partition = world.broker.replicas.find("t", 0)
        assert partition is not None
        assert partition.leader is not None
        assert [f.broker_id for f in partition.leader.followers] == [2, 3]
        assert partition.replicas == (1, 2, 3)
        world.tell_leader(1, "t", ID, {0: plan(1, 2, (1, 3), (1, 3))})
        assert [f.broker_id for f in partition.leader.followers] == [3]
        assert partition.replicas == (1, 3)

    @behaviour("N10", "L5", "L13")
    def test_with_a_directory_lost_only_a_new_replica_gets_a_log(self) -> None:
        world = OneBroker(**{"log.dirs": f"{LOG_DIR},/more"})
        assert world.lead() == ErrorCode.NONE
        log = world.broker.logs.log(T0)
        assert log is not None
        assert log.log_directory == LOG_DIR
        world.host.disk.plan(world.host.disk.operations, Fault.FAIL)
        client = world.client(1)
        client.send(ApiKey.PRODUCE, 11, produce_request("t", {0: batch([b"a"])}))
        world.run(10)
        assert world.lead(1) == ErrorCode.KAFKA_STORAGE_ERROR, "its log was lost"
        # What is not new may have a log in the directory that is lost.
        assert world.lead(1, topic="old", topic_id=NO_TOPIC_ID) == ErrorCode.KAFKA_STORAGE_ERROR
        assert world.broker.logs.log(TopicPartition("old", 0)) is None
        for topic in ("t", "old"):
            partition = world.broker.replicas.find(topic, 0)
            assert partition is not None
            assert partition.is_offline
        # What is offline stays so, new or not.
        answer = world.tell_leader(1, "t", ID, {0: plan(1, 2, (1,), (1,))}, is_new=True)
        assert answer.topics[0].partition_errors[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert world.lead(0, topic="new", topic_id=NO_TOPIC_ID) == ErrorCode.NONE
        made = world.broker.logs.log(TopicPartition("new", 0))
        assert made is not None
        assert made.log_directory == "/more"

    @behaviour("L5", "L13", "S3")
    def test_a_disk_that_refuses_a_log_is_a_storage_error_and_stays_one(
        self, world: OneBroker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object) -> None:
            raise DiskLost(LOG_DIR, "broken")

        with monkeypatch.context() as broken:
            broken.setattr(world.broker.logs, "get_or_create", refuse)
            assert world.lead() == ErrorCode.KAFKA_STORAGE_ERROR
        assert world.lead(1) == ErrorCode.KAFKA_STORAGE_ERROR
        assert world.stop(is_deletion=False) == ErrorCode.KAFKA_STORAGE_ERROR

    @behaviour("L16")
    def test_a_store_that_cannot_be_asked_for_settings_makes_no_log(self, world: OneBroker) -> None:
        world.broker.topic_configs.load = lambda topics, then, now_ms: then(False, now_ms)  # type: ignore[method-assign]
        assert world.lead() == ErrorCode.NONE
        assert world.broker.replicas.find("t", 0) is None
        assert "t-0" not in world.files()

    @behaviour("L6")
    def test_the_id_in_a_log_from_before_the_start_counts(self, world: OneBroker) -> None:
        world.lead()
        world.run(1000)
        world.host.kill()
        world.host.start()
        world.tell_metadata(1, "t", ID, {0: plan(1, 0, (1,), (1,))}, [1])
        other = TopicId(b"\x06" * 16)
        assert world.lead(1, topic_id=other) == ErrorCode.INCONSISTENT_TOPIC_ID
        assert world.lead(1) == ErrorCode.NONE

    def test_whose_a_log_is_survives_the_power_once_it_was_answered(self, world: OneBroker) -> None:
        world.host.disk.sync_directory("/")
        assert world.lead() == ErrorCode.NONE
        world.host.kill()
        world.host.disk.cut_power()
        assert world.host.disk.snapshot(LOG_DIR)["t-0/partition.metadata"] == (
            encode_partition_metadata(ID)
        )
        world.host.start()
        log = world.host.broker.logs.log(T0)
        assert log is not None
        assert log.topic_id == ID

    def test_one_job_writes_the_ids_of_many_logs(self, world: OneBroker) -> None:
        told = {number: plan(1, 0, (1,), (1,)) for number in range(LOGS_PER_JOB_MAX)}
        world.host.disk.trace.clear()
        world.tell_leader(1, "t", ID, told, is_new=True)
        syncs = [line for line in world.host.disk.trace if line == f"sync directory {LOG_DIR}"]
        assert len(syncs) == 1
        files = world.host.disk.snapshot(LOG_DIR)
        assert all(f"t-{number}/partition.metadata" in files for number in told)

    def test_an_id_that_cannot_be_written_is_a_storage_error(self) -> None:
        rehearsal = OneBroker()
        rehearsal.lead()
        trace = rehearsal.host.disk.trace
        writing = next(
            n for n, line in enumerate(trace) if "rename to /logs/t-0/partition.metadata" in line
        )
        world = OneBroker()
        world.host.disk.plan(writing, Fault.FAIL)
        assert world.lead() == ErrorCode.KAFKA_STORAGE_ERROR
        partition = world.broker.replicas.find("t", 0)
        assert partition is not None
        assert partition.is_offline
        assert not partition.is_leader

    @behaviour("L10")
    def test_leaders_are_made_before_followers(
        self, world: OneBroker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One request makes a leader of the second partition and a follower of the first."""
        seen: list[bool] = []
        follow = world.broker.fetchers.follow

        def note_and_follow(*arguments: Any) -> None:
            led = world.broker.replicas.find("t", 1)
            seen.append(led is not None and led.is_leader)
            follow(*arguments)

        monkeypatch.setattr(world.broker.fetchers, "follow", note_and_follow)
        told = {0: plan(2, 0, (2, 1), (2, 1)), 1: plan(1, 0, (1,), (1,))}
        world.tell_leader(1, "t", ID, told, is_new=True)
        assert seen == [True]

    @behaviour("L10")
    def test_leaders_are_made_and_answered_with_followers_in_one_request(
        self, world: OneBroker
    ) -> None:
        response = world.tell_leader(
            1, "t", ID, {0: plan(1, 0, (1,), (1, 2)), 1: plan(2, 0, (2,), (1, 2))}, is_new=True
        )
        errors = {e.partition_index: e.error_code for e in response.topics[0].partition_errors}
        assert errors == {0: 0, 1: 0}
        assert world.broker.fetchers.follower(TopicPartition("t", 1)) is not None

    @behaviour("L3")
    def test_requests_are_carried_out_one_after_the_other(self, world: OneBroker) -> None:
        """The first waits for the store; the second, sent with it, must not overtake it."""
        client = world.client(1)
        lead = LeaderAndIsrRequest(
            controller_epoch=1,
            topic_states=[
                LeaderAndIsrTopicState(
                    topic_name="t",
                    topic_id=ID,
                    partition_states=[
                        LeaderAndIsrPartitionState(leader=1, isr=[1], replicas=[1], is_new=True)
                    ],
                )
            ],
        )
        stop = StopReplicaRequest(
            controller_epoch=1,
            topic_states=[
                StopReplicaTopicState(
                    topic_name="t",
                    partition_states=[
                        StopReplicaPartitionState(leader_epoch=-2, delete_partition=True)
                    ],
                )
            ],
        )
        first = client.send(ApiKey.LEADER_AND_ISR, 7, lead)
        second = client.send(ApiKey.STOP_REPLICA, 4, stop)
        world.run(10)
        assert list(client.answers) == [first, second]
        assert world.broker.replicas.find("t", 0) is None
        assert "t-0" not in world.files()
        assert any(name.endswith("-delete") for name in world.files())

    def test_many_new_logs_are_made_in_several_turns(self, world: OneBroker) -> None:
        decisions = {index: plan(1, 0, (1,), (1,)) for index in range(150)}
        response = world.tell_leader(1, "t", ID, decisions, is_new=True)
        assert {e.error_code for e in response.topics[0].partition_errors} == {0}
        assert len(world.broker.replicas.partitions()) == 150

    @pytest.mark.parametrize("version", range(8))
    @behaviour("L26", "Q11")
    def test_every_version_is_carried_out_and_answered_in_its_shape(
        self, world: OneBroker, version: int
    ) -> None:
        state = LeaderAndIsrPartitionState(
            topic_name="t", leader=BrokerId(1), isr=[1], replicas=[1], is_new=version >= 1
        )
        body = LeaderAndIsrRequest(controller_epoch=1)
        if version < 2:
            body.ungrouped_partition_states = [state]
        else:
            body.topic_states = [
                LeaderAndIsrTopicState(topic_name="t", topic_id=ID, partition_states=[state])
            ]
        answer: LeaderAndIsrResponse = world.client(1).call(ApiKey.LEADER_AND_ISR, version, body)
        if version < 5:
            (error,) = answer.partition_errors
            assert (error.topic_name, error.partition_index, error.error_code) == ("t", 0, 0)
        else:
            (topic,) = answer.topics
            assert topic.topic_id == ID
            assert topic.partition_errors[0].error_code == 0
        partition = world.broker.replicas.find("t", 0)
        assert partition is not None
        assert partition.is_leader
        assert partition.topic_id == (ID if version >= 5 else NO_TOPIC_ID)

    @behaviour("R23")
    def test_begin_and_end_are_told_with_controller_epoch_and_number(
        self, world: OneBroker
    ) -> None:
        world.host.told.events.clear()
        world.lead()
        (began,) = world.host.told.of(ControlRequestBegan)
        (ended,) = world.host.told.of(ControlRequestEnded)
        assert (began.api, began.controller_id, began.controller_epoch) == ("LeaderAndIsr", 1, 1)
        assert began.partitions == ("t-0",)
        assert ended.correlation_id == began.correlation_id
        assert (ended.error, ended.partition_errors) == ("NONE", (("t-0", "NONE"),))


class TestTopicSettings:
    def set_config(self, world: VirtualWorld, topic: str, data: bytes) -> None:
        """Write the topic's config node, with its parents, as an administrator would."""
        from barnabas.model.znode import Create

        store = world.ensemble.connect(lambda event, now_ms: None)
        world.settle()
        for path in ("/config", "/config/topics"):
            store.submit([Create(path)])
        store.submit([Create(config_path(topic_entity(topic)), data)])
        world.settle()
        world.ensemble.close(store)

    def test_the_settings_of_a_topic_are_read_before_its_log_is_made(
        self, world: OneBroker
    ) -> None:
        self.set_config(world, "t", config_to_bytes({"min.insync.replicas": "3"}))
        world.lead()
        partition = world.broker.replicas.find("t", 0)
        assert partition is not None
        assert partition.leader is not None
        assert partition.leader.min_insync_replicas == 3

    def test_settings_that_cannot_be_read_are_told_and_the_brokers_hold(
        self, world: OneBroker
    ) -> None:
        self.set_config(world, "t", b'{"version":1,"config":{"retention.ms":[]}}')
        assert world.lead() == ErrorCode.NONE
        (told,) = world.host.told.of(TopicConfigUnreadable)
        assert told.topic == "t"

    def test_a_log_from_before_the_start_works_by_what_is_read_when_it_is_hosted(
        self, world: OneBroker
    ) -> None:
        world.lead()
        world.host.kill()
        world.host.start()
        self.set_config(world, "t", config_to_bytes({"segment.bytes": "5000"}))
        world.tell_metadata(1, "t", ID, {0: plan(1, 1, (1,), (1,))}, [1])
        world.lead(1)
        log = world.host.broker.logs.log(T0)
        assert log is not None
        assert log.config.segment_bytes == 5000

    def test_a_change_reaches_open_logs_and_leaders(self, world: OneBroker) -> None:
        world.lead()
        overrides = {"min.insync.replicas": "2", "max.message.bytes": "100"}
        world.broker.topic_configs.apply("t", overrides, world.now_ms)
        partition = world.broker.replicas.find("t", 0)
        assert partition is not None
        assert partition.leader is not None
        assert partition.log is not None
        assert partition.leader.min_insync_replicas == 2
        assert partition.rules.max_message_bytes == 100
        assert partition.log.config.max_message_bytes == 100


class TestStopReplica:
    @behaviour("S7")
    def test_without_deletion_the_replica_stays_and_fetches_no_more(self, world: OneBroker) -> None:
        world.follow(1)
        assert world.stop(is_deletion=False, leader_epoch=1) == ErrorCode.NONE
        assert world.broker.fetchers.follower(T0) is None
        assert world.broker.replicas.find("t", 0) is not None
        assert "t-0" in world.files()

    @behaviour("S7")
    def test_a_deleted_log_is_renamed_at_once_and_removed_after_the_delay(
        self, world: OneBroker
    ) -> None:
        world.lead()
        assert world.stop(is_deletion=True) == ErrorCode.NONE
        renamed = [name for name in world.files() if name.endswith("-delete")]
        assert len(renamed) == 1
        assert renamed[0].startswith("t-0.")
        world.run(59_000)
        assert renamed[0] in world.files()
        world.run(2000)
        assert renamed[0] not in world.files()

    @behaviour("S6", "S8")
    def test_who_waits_at_a_deleted_replica_is_answered(self, world: OneBroker) -> None:
        world.tell_leader(1, "t", ID, {0: plan(1, 0, (1, 2), (1, 2))}, is_new=True)
        client = world.client(1)
        number = client.send(ApiKey.PRODUCE, 11, produce_request("t", {0: batch([b"a"])}))
        world.run(10)
        assert number not in client.answers
        assert world.stop(is_deletion=True) == ErrorCode.NONE
        world.run(10)
        error = produced(client.answers[number]).error_code
        assert error == ErrorCode.NOT_LEADER_OR_FOLLOWER

    @behaviour("S5")
    def test_a_log_that_nobody_hosts_is_deleted_all_the_same(self, world: OneBroker) -> None:
        world.lead()
        world.host.kill()
        world.host.start()
        assert world.host.broker.replicas.find("t", 0) is None
        assert world.stop(is_deletion=True) == ErrorCode.NONE
        assert "t-0" not in world.files()

    @behaviour("S9")
    def test_those_who_keep_state_by_partition_are_told_of_a_deletion(
        self, world: OneBroker
    ) -> None:
        told: list[tuple[TopicPartition, int]] = []
        world.broker.control_requests.on_replica_deleted(
            lambda partition, epoch, now_ms: told.append((partition, epoch))
        )
        world.lead()
        world.stop(is_deletion=False, leader_epoch=0)
        assert told == []
        world.stop(is_deletion=True, leader_epoch=7)
        world.stop(is_deletion=True, leader_epoch=-2)
        assert told == [(T0, 7), (T0, -1)]

    @pytest.mark.parametrize("version", range(5))
    def test_every_version_is_carried_out(self, world: OneBroker, version: int) -> None:
        world.lead()
        body = StopReplicaRequest(controller_epoch=1)
        if version == 0:
            body.delete_partitions = True
            body.ungrouped_partitions = [StopReplicaPartitionV0(topic_name="t", partition_index=0)]
        elif version < 3:
            body.delete_partitions = True
            body.topics = [StopReplicaTopicV1(name="t", partition_indexes=[0])]
        else:
            body.topic_states = [
                StopReplicaTopicState(
                    topic_name="t",
                    partition_states=[
                        StopReplicaPartitionState(leader_epoch=0, delete_partition=True)
                    ],
                )
            ]
        answer = world.client(1).call(ApiKey.STOP_REPLICA, version, body)
        (error,) = answer.partition_errors
        assert (error.topic_name, error.partition_index, error.error_code) == ("t", 0, 0)
        assert world.broker.replicas.find("t", 0) is None
