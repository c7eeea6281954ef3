"""LeaderAndIsr: the controller tells a broker which replicas it holds, leads and follows."""

from barnabas.formats.codec.schema import (
    BOOL,
    BROKER_EPOCH,
    BROKER_ID,
    CONTROLLER_EPOCH,
    INT8,
    INT16,
    INT32,
    LEADER_EPOCH,
    PARTITION_EPOCH,
    STRING,
    TOPIC_ID,
    Api,
    Array,
    Field,
    Struct,
)

LEADER_AND_ISR_PARTITION_STATE = Struct(
    "LeaderAndIsrPartitionState",
    Field("topic_name", STRING, "0-1", ignorable=True),
    Field("partition_index", INT32),
    Field("controller_epoch", CONTROLLER_EPOCH),
    Field("leader", BROKER_ID),
    Field("leader_epoch", LEADER_EPOCH),
    Field("isr", Array(BROKER_ID)),
    Field("partition_epoch", PARTITION_EPOCH),
    Field("replicas", Array(BROKER_ID)),
    Field("adding_replicas", Array(BROKER_ID), "3+", ignorable=True),
    Field("removing_replicas", Array(BROKER_ID), "3+", ignorable=True),
    Field("is_new", BOOL, "1+", ignorable=True),
    Field("leader_recovery_state", INT8, "6+"),
)

LEADER_AND_ISR_TOPIC_STATE = Struct(
    "LeaderAndIsrTopicState",
    Field("topic_name", STRING, "2+"),
    Field("topic_id", TOPIC_ID, "5+", ignorable=True),
    Field("partition_states", Array(LEADER_AND_ISR_PARTITION_STATE), "2+"),
)

LEADER_AND_ISR_LIVE_LEADER = Struct(
    "LeaderAndIsrLiveLeader",
    Field("broker_id", BROKER_ID),
    Field("host_name", STRING),
    Field("port", INT32),
)

REQUEST = Struct(
    "LeaderAndIsrRequest",
    Field("controller_id", BROKER_ID),
    Field("is_k_raft_controller", BOOL, "7+"),
    Field("controller_epoch", CONTROLLER_EPOCH),
    Field("broker_epoch", BROKER_EPOCH, "2+", default=-1, ignorable=True),
    Field("type", INT8, "5+"),
    Field("ungrouped_partition_states", Array(LEADER_AND_ISR_PARTITION_STATE), "0-1"),
    Field("topic_states", Array(LEADER_AND_ISR_TOPIC_STATE), "2+"),
    Field("live_leaders", Array(LEADER_AND_ISR_LIVE_LEADER)),
)

LEADER_AND_ISR_PARTITION_ERROR = Struct(
    "LeaderAndIsrPartitionError",
    Field("topic_name", STRING, "0-4", ignorable=True),
    Field("partition_index", INT32),
    Field("error_code", INT16),
)

LEADER_AND_ISR_TOPIC_ERROR = Struct(
    "LeaderAndIsrTopicError",
    Field("topic_id", TOPIC_ID, "5+"),
    Field("partition_errors", Array(LEADER_AND_ISR_PARTITION_ERROR), "5+"),
)

RESPONSE = Struct(
    "LeaderAndIsrResponse",
    Field("error_code", INT16),
    Field("partition_errors", Array(LEADER_AND_ISR_PARTITION_ERROR), "0-4"),
    Field("topics", Array(LEADER_AND_ISR_TOPIC_ERROR), "5+"),
)

API = Api(
    key=4,
    name="LeaderAndIsr",
    versions="0-7",
    flexible="4+",
    request=REQUEST,
    response=RESPONSE,
)
