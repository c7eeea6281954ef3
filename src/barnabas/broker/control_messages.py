"""What this controller sends, from values to Kafka's messages, and the answers back to values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Final, NamedTuple, assert_never

from barnabas.core.controller.request_batch import (
    ControlRequest,
    LeaderAndIsrEntry,
    MetadataEntry,
    SendLeaderAndIsr,
    SendStopReplica,
    SendUpdateMetadata,
    StopReplicaEntry,
)
from barnabas.core.image.cluster_image import RegisteredBroker
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.generated.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicState,
)
from barnabas.formats.wire.generated.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaTopicState,
)
from barnabas.formats.wire.generated.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    UpdateMetadataTopicState,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import NO_TOPIC_ID, BrokerId, TopicId, TopicPartition
from barnabas.model.listeners import SECURITY_PROTOCOLS

LEADER_AND_ISR_VERSION: Final = 7
UPDATE_METADATA_VERSION: Final = 8
STOP_REPLICA_VERSION: Final = 4
"""What inter.broker.protocol.version 3.9 speaks; control requests are never negotiated."""

_INCREMENTAL: Final = 0
"""The type of every request of a ZooKeeper controller."""


class Message(NamedTuple):
    """A request as the wire wants it."""

    api: ApiKey
    version: int
    body: LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest


def to_message(controller_id: BrokerId, request: ControlRequest, listener: str) -> Message:
    """The message of a request; `listener` is the one by which brokers reach each other."""
    match request:
        case SendLeaderAndIsr():
            body = _leader_and_isr(controller_id, request, listener)
            return Message(ApiKey.LEADER_AND_ISR, LEADER_AND_ISR_VERSION, body)
        case SendUpdateMetadata():
            return Message(
                ApiKey.UPDATE_METADATA,
                UPDATE_METADATA_VERSION,
                _update_metadata(controller_id, request),
            )
        case SendStopReplica():
            return Message(
                ApiKey.STOP_REPLICA, STOP_REPLICA_VERSION, _stop_replica(controller_id, request)
            )
        case _:
            assert_never(request)


def _leader_and_isr(
    controller_id: BrokerId, request: SendLeaderAndIsr, listener: str
) -> LeaderAndIsrRequest:
    return LeaderAndIsrRequest(
        controller_id=controller_id,
        controller_epoch=request.controller_epoch,
        broker_epoch=request.broker_epoch,
        type=_INCREMENTAL,
        topic_states=[
            LeaderAndIsrTopicState(
                topic_name=topic,
                topic_id=request.topic_ids.get(topic, NO_TOPIC_ID),
                partition_states=[_leader_and_isr_state(entry) for entry in entries],
            )
            for topic, entries in groupby(request.entries, key=_topic)
        ],
        live_leaders=[
            leader
            for broker in request.live_leaders
            if (leader := _live_leader(broker, listener)) is not None
        ],
    )


def _leader_and_isr_state(entry: LeaderAndIsrEntry) -> LeaderAndIsrPartitionState:
    state, assignment = entry.state, entry.assignment
    return LeaderAndIsrPartitionState(
        partition_index=entry.partition.partition,
        controller_epoch=state.controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=list(state.isr),
        partition_epoch=state.partition_epoch,
        replicas=list(assignment.replicas),
        adding_replicas=list(assignment.adding_replicas),
        removing_replicas=list(assignment.removing_replicas),
        is_new=entry.is_new,
        leader_recovery_state=state.leader_recovery_state,
    )


def _live_leader(broker: RegisteredBroker, listener: str) -> LeaderAndIsrLiveLeader | None:
    end = broker.registration.listener(listener)
    if end is None:
        return None
    return LeaderAndIsrLiveLeader(broker_id=broker.broker_id, host_name=end.host, port=end.port)


def _update_metadata(controller_id: BrokerId, request: SendUpdateMetadata) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(
        controller_id=controller_id,
        type=_INCREMENTAL,
        controller_epoch=request.controller_epoch,
        broker_epoch=request.broker_epoch,
        topic_states=[
            UpdateMetadataTopicState(
                topic_name=topic,
                topic_id=request.topic_ids.get(topic, NO_TOPIC_ID),
                partition_states=[_metadata_state(entry) for entry in entries],
            )
            for topic, entries in groupby(request.entries, key=_topic)
        ],
        live_brokers=[_live_broker(broker) for broker in request.live_brokers],
    )


def _metadata_state(entry: MetadataEntry) -> UpdateMetadataPartitionState:
    state = entry.state
    return UpdateMetadataPartitionState(
        partition_index=entry.partition.partition,
        controller_epoch=state.controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=list(state.isr),
        zk_version=state.partition_epoch,
        replicas=list(entry.replicas),
        offline_replicas=list(entry.offline_replicas),
    )


def _live_broker(broker: RegisteredBroker) -> UpdateMetadataBroker:
    return UpdateMetadataBroker(
        id=broker.broker_id,
        endpoints=[
            UpdateMetadataEndpoint(
                port=end.port,
                host=end.host,
                listener=end.name,
                security_protocol=SECURITY_PROTOCOLS.index(end.security_protocol),
            )
            for end in broker.registration.listeners
        ],
        rack=broker.registration.rack,
    )


def _stop_replica(controller_id: BrokerId, request: SendStopReplica) -> StopReplicaRequest:
    return StopReplicaRequest(
        controller_id=controller_id,
        controller_epoch=request.controller_epoch,
        broker_epoch=request.broker_epoch,
        topic_states=[
            StopReplicaTopicState(
                topic_name=topic,
                partition_states=[
                    StopReplicaPartitionState(
                        partition_index=entry.partition.partition,
                        leader_epoch=entry.leader_epoch,
                        delete_partition=entry.delete_partition,
                    )
                    for entry in entries
                ],
            )
            for topic, entries in groupby(request.entries, key=_topic)
        ],
    )


def _topic(entry: LeaderAndIsrEntry | MetadataEntry | StopReplicaEntry) -> str:
    return entry.partition.topic


# -- answers -------------------------------------------------------------------------------------


def top_level_error(response: object) -> ErrorCode:
    """The error of the whole request."""
    match response:
        case LeaderAndIsrResponse() | UpdateMetadataResponse() | StopReplicaResponse():
            return error_of(response.error_code)
        case _:
            return ErrorCode.UNKNOWN_SERVER_ERROR


def to_partition_errors(
    request: ControlRequest, response: object
) -> dict[TopicPartition, ErrorCode]:
    """What a broker said of each partition; an answer for a partition not asked is passed over."""
    answered: dict[TopicPartition, ErrorCode] = {}
    match response:
        case LeaderAndIsrResponse():
            names = _names(request)
            for topic in response.topics:
                name = names.get(topic.topic_id)
                if name is not None:
                    for one in topic.partition_errors:
                        partition = TopicPartition(name, one.partition_index)
                        answered[partition] = error_of(one.error_code)
        case StopReplicaResponse():
            for error in response.partition_errors:
                partition = TopicPartition(error.topic_name, error.partition_index)
                answered[partition] = error_of(error.error_code)
        case _:
            pass
    return {entry: answered[entry] for entry in _partitions(request) if entry in answered}


def error_of(code: int) -> ErrorCode:
    """The error by its number; one that Kafka 3.9 does not know is an unknown one."""
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def _names(request: ControlRequest) -> Mapping[TopicId, str]:
    if not isinstance(request, SendLeaderAndIsr):
        return {}
    return {topic_id: topic for topic, topic_id in request.topic_ids.items()}


def _partitions(request: ControlRequest) -> Iterable[TopicPartition]:
    return [entry.partition for entry in request.entries]
