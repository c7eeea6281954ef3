""".../partitions/P/state: leader and isr; the version of the node is the partition epoch."""

from barnabas.formats.znodes.json_fields import parse_object, to_json
from barnabas.formats.znodes.topics import partition_path
from barnabas.model.epochs import ControllerEpoch, LeaderEpoch, PartitionEpoch
from barnabas.model.errors import DecodeError
from barnabas.model.ids import BrokerId
from barnabas.model.partition import LeaderAndIsr, LeaderRecoveryState

STATE_VERSION = 1


def state_path(topic: str, partition: int) -> str:
    return f"{partition_path(topic, partition)}/state"


def to_bytes(state: LeaderAndIsr) -> bytes:
    """The state without its partition epoch, which the write itself gives."""
    members: dict[str, object] = {
        "controller_epoch": state.controller_epoch,
        "leader": state.leader,
        "version": STATE_VERSION,
    }
    if state.leader_recovery_state is LeaderRecoveryState.RECOVERING:
        members["leader_recovery_state"] = int(LeaderRecoveryState.RECOVERING)
    members["leader_epoch"] = state.leader_epoch
    members["isr"] = state.isr
    return to_json(members)


def from_bytes(path: str, data: bytes | None, znode_version: int) -> LeaderAndIsr:
    """The state as it stands at a version of its znode."""
    found = parse_object(path, data)
    recovery_state = LeaderRecoveryState.RECOVERED
    if "leader_recovery_state" in found:
        number = found.integer("leader_recovery_state")
        if number not in (LeaderRecoveryState.RECOVERED, LeaderRecoveryState.RECOVERING):
            raise DecodeError(f"{path}: found leader_recovery_state {number}, expected 0 or 1")
        recovery_state = LeaderRecoveryState(number)
    return LeaderAndIsr(
        leader=BrokerId(found.integer("leader")),
        isr=tuple(BrokerId(replica) for replica in found.integers("isr")),
        controller_epoch=ControllerEpoch(found.integer("controller_epoch")),
        leader_epoch=LeaderEpoch(found.integer("leader_epoch")),
        leader_recovery_state=recovery_state,
        partition_epoch=PartitionEpoch(znode_version),
    )
