"""A deletion on a disk that is slow: it waits for the disk, and nobody else does."""

from barnabas.formats.logdir.checkpoints import decode_offset_checkpoint
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.generated.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import BrokerId, TopicId, TopicPartition
from tests.behaviours import behaviour
from tests.worlds.memory_disk import Fault, MemoryDisk
from tests.worlds.one_broker import TOPIC, OneLeader
from tests.worlds.requests import values_of
from tests.worlds.virtual_world import LOG_DIR, Client, plan

OTHER_ID = TopicId(b"\x06" * 16)
T0 = TopicPartition(TOPIC, 0)
CHECKPOINT = f"{LOG_DIR}/recovery-point-offset-checkpoint"


class SlowDisk(OneLeader):
    """Records of t-0 are being flushed by a disk that does not get on."""

    def __init__(self) -> None:
        super().__init__()
        self.write(b"x")
        self.broker.logs.manager.flush(self.log())
        self.disk.is_slow = True
        self.run(1)
        assert self.log().is_flushing

    @property
    def disk(self) -> MemoryDisk:
        return self.host.disk

    def begin(self) -> tuple[Client, int]:
        """Have t-0 deleted; who asks, and the number of the request."""
        partition = StopReplicaPartitionState(
            partition_index=0, leader_epoch=-2, delete_partition=True
        )
        topic = StopReplicaTopicState(topic_name=TOPIC, partition_states=[partition])
        body = StopReplicaRequest(
            controller_id=BrokerId(1),
            controller_epoch=self.controller_epoch,
            topic_states=[topic],
        )
        controller = self.client(1)
        return controller, controller.send(ApiKey.STOP_REPLICA, 4, body)

    def finish(self, controller: Client, number: int) -> int:
        """Let the disk get on; what the deletion is answered."""
        self.disk.is_slow = False
        self.run_until(lambda: number in controller.answers)
        (answer,) = controller.answers[number].partition_errors
        return answer.error_code

    def renamed(self) -> list[str]:
        return [name for name in self.disk.list_directory(LOG_DIR) if name.startswith("t-0.")]


@behaviour("S6", "S7")
def test_others_are_answered_while_a_deletion_waits() -> None:
    world = SlowDisk()
    controller, number = world.begin()
    world.run(5_000)
    assert number not in controller.answers
    assert world.write(b"y", index=1) == 0
    assert values_of(world.fetch(0, index=1)) == [b"y"]
    assert world.fetch(0).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.broker.logs.log(T0) is None
    assert "t-0/" in world.disk.list_directory(LOG_DIR)
    assert world.finish(controller, number) == ErrorCode.NONE
    assert "t-0/" not in world.disk.list_directory(LOG_DIR)
    assert [name.endswith("-delete/") for name in world.renamed()] == [True]
    assert T0 not in decode_offset_checkpoint(world.disk.read_file(CHECKPOINT))


def test_what_comes_after_a_deletion_waits_for_it() -> None:
    world = SlowDisk()
    controller, number = world.begin()
    world.run(1_000)
    world.disk.is_slow = False
    world.tell_leader(1, TOPIC, OTHER_ID, {0: plan(1, 0, (1,), (1,))}, is_new=True)
    assert number in controller.answers
    assert world.log().topic_id == OTHER_ID
    assert world.log().log_end_offset == 0


def test_a_directory_lost_during_a_deletion_is_told_as_a_storage_error() -> None:
    world = SlowDisk()
    controller, number = world.begin()
    world.run(1_000)
    world.disk.plan(world.disk.operations, Fault.FAIL)
    assert world.finish(controller, number) == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_rename_that_is_refused_is_told_as_a_storage_error() -> None:
    world = SlowDisk()
    world.disk.is_slow = False
    world.run(10)
    controller, number = world.begin()
    world.disk.is_slow = True
    world.run(1_000)
    world.disk.plan(world.disk.operations, Fault.FAIL)
    assert world.finish(controller, number) == ErrorCode.KAFKA_STORAGE_ERROR
    assert not world.renamed()


def test_a_clean_stop_ends_a_deletion_that_is_under_way() -> None:
    world = SlowDisk()
    world.begin()
    world.run(1_000)
    world.disk.is_slow = False
    world.host.stop()
    assert world.renamed()
    assert T0 not in decode_offset_checkpoint(world.disk.read_file(CHECKPOINT))
