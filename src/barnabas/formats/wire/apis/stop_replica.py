"""StopReplica: the controller tells a broker to stop replicas, and perhaps to delete them."""

from barnabas.formats.codec.schema import (
    BOOL,
    BROKER_EPOCH,
    BROKER_ID,
    CONTROLLER_EPOCH,
    INT16,
    INT32,
    LEADER_EPOCH,
    STRING,
    Api,
    Array,
    Field,
    Struct,
)

STOP_REPLICA_PARTITION_V0 = Struct(
    "StopReplicaPartitionV0",
    Field("topic_name", STRING, "0"),
    Field("partition_index", INT32, "0"),
)

STOP_REPLICA_TOPIC_V1 = Struct(
    "StopReplicaTopicV1",
    Field("name", STRING, "1-2"),
    Field("partition_indexes", Array(INT32), "1-2"),
)

STOP_REPLICA_PARTITION_STATE = Struct(
    "StopReplicaPartitionState",
    Field("partition_index", INT32, "3+"),
    Field("leader_epoch", LEADER_EPOCH, "3+", default=-1),
    Field("delete_partition", BOOL, "3+"),
)

STOP_REPLICA_TOPIC_STATE = Struct(
    "StopReplicaTopicState",
    Field("topic_name", STRING, "3+"),
    Field("partition_states", Array(STOP_REPLICA_PARTITION_STATE), "3+"),
)

REQUEST = Struct(
    "StopReplicaRequest",
    Field("controller_id", BROKER_ID),
    Field("is_k_raft_controller", BOOL, "4+"),
    Field("controller_epoch", CONTROLLER_EPOCH),
    Field("broker_epoch", BROKER_EPOCH, "1+", default=-1, ignorable=True),
    Field("delete_partitions", BOOL, "0-2"),
    Field("ungrouped_partitions", Array(STOP_REPLICA_PARTITION_V0), "0"),
    Field("topics", Array(STOP_REPLICA_TOPIC_V1), "1-2"),
    Field("topic_states", Array(STOP_REPLICA_TOPIC_STATE), "3+"),
)

STOP_REPLICA_PARTITION_ERROR = Struct(
    "StopReplicaPartitionError",
    Field("topic_name", STRING),
    Field("partition_index", INT32),
    Field("error_code", INT16),
)

RESPONSE = Struct(
    "StopReplicaResponse",
    Field("error_code", INT16),
    Field("partition_errors", Array(STOP_REPLICA_PARTITION_ERROR)),
)

API = Api(
    key=5,
    name="StopReplica",
    versions="0-4",
    flexible="2+",
    request=REQUEST,
    response=RESPONSE,
)
