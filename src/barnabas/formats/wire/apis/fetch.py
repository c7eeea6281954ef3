"""Fetch: record batches from partitions, for consumers and, with a replica id, for followers."""

from barnabas.formats.codec.schema import (
    BROKER_EPOCH,
    BROKER_ID,
    INT8,
    INT16,
    INT32,
    INT64,
    LEADER_EPOCH,
    PRODUCER_ID,
    RECORDS,
    STRING,
    TOPIC_ID,
    UUID,
    Api,
    Array,
    Field,
    Struct,
)

REPLICA_STATE = Struct(
    "ReplicaState",
    Field("replica_id", BROKER_ID, "15+", default=-1),
    Field("replica_epoch", BROKER_EPOCH, "15+", default=-1),
)

FETCH_PARTITION = Struct(
    "FetchPartition",
    Field("partition", INT32),
    Field("current_leader_epoch", LEADER_EPOCH, "9+", default=-1, ignorable=True),
    Field("fetch_offset", INT64),
    Field("last_fetched_epoch", LEADER_EPOCH, "12+", default=-1),
    Field("log_start_offset", INT64, "5+", default=-1, ignorable=True),
    Field("partition_max_bytes", INT32),
    Field("replica_directory_id", UUID, "17+", tag=0, ignorable=True),
)

FETCH_TOPIC = Struct(
    "FetchTopic",
    Field("topic", STRING, "0-12", ignorable=True),
    Field("topic_id", TOPIC_ID, "13+", ignorable=True),
    Field("partitions", Array(FETCH_PARTITION)),
)

FORGOTTEN_TOPIC = Struct(
    "ForgottenTopic",
    Field("topic", STRING, "7-12", ignorable=True),
    Field("topic_id", TOPIC_ID, "13+", ignorable=True),
    Field("partitions", Array(INT32), "7+"),
)

REQUEST = Struct(
    "FetchRequest",
    Field("cluster_id", STRING, "12+", nullable="12+", tag=0, default=None, ignorable=True),
    Field("replica_id", BROKER_ID, "0-14", default=-1),
    Field("replica_state", REPLICA_STATE, "15+", tag=1),
    Field("max_wait_ms", INT32),
    Field("min_bytes", INT32),
    Field("max_bytes", INT32, "3+", default=2147483647, ignorable=True),
    Field("isolation_level", INT8, "4+", ignorable=True),
    Field("session_id", INT32, "7+", ignorable=True),
    Field("session_epoch", INT32, "7+", default=-1, ignorable=True),
    Field("topics", Array(FETCH_TOPIC)),
    Field("forgotten_topics_data", Array(FORGOTTEN_TOPIC), "7+"),
    Field("rack_id", STRING, "11+", ignorable=True),
)

EPOCH_END_OFFSET = Struct(
    "EpochEndOffset",
    Field("epoch", LEADER_EPOCH, "12+", default=-1),
    Field("end_offset", INT64, "12+", default=-1),
)

LEADER_ID_AND_EPOCH = Struct(
    "LeaderIdAndEpoch",
    Field("leader_id", BROKER_ID, "12+", default=-1),
    Field("leader_epoch", LEADER_EPOCH, "12+", default=-1),
)

SNAPSHOT_ID = Struct(
    "SnapshotId",
    Field("end_offset", INT64, default=-1),
    Field("epoch", LEADER_EPOCH, default=-1),
)

ABORTED_TRANSACTION = Struct(
    "AbortedTransaction",
    Field("producer_id", PRODUCER_ID, "4+"),
    Field("first_offset", INT64, "4+"),
)

PARTITION_DATA = Struct(
    "PartitionData",
    Field("partition_index", INT32),
    Field("error_code", INT16),
    Field("high_watermark", INT64),
    Field("last_stable_offset", INT64, "4+", default=-1, ignorable=True),
    Field("log_start_offset", INT64, "5+", default=-1, ignorable=True),
    Field("diverging_epoch", EPOCH_END_OFFSET, "12+", tag=0),
    Field("current_leader", LEADER_ID_AND_EPOCH, "12+", tag=1),
    Field("snapshot_id", SNAPSHOT_ID, "12+", tag=2),
    Field("aborted_transactions", Array(ABORTED_TRANSACTION), "4+", nullable="4+", ignorable=True),
    Field("preferred_read_replica", BROKER_ID, "11+", default=-1),
    Field("records", RECORDS, nullable="0+"),
)

FETCHABLE_TOPIC_RESPONSE = Struct(
    "FetchableTopicResponse",
    Field("topic", STRING, "0-12", ignorable=True),
    Field("topic_id", TOPIC_ID, "13+", ignorable=True),
    Field("partitions", Array(PARTITION_DATA)),
)

NODE_ENDPOINT = Struct(
    "NodeEndpoint",
    Field("node_id", BROKER_ID, "16+"),
    Field("host", STRING, "16+"),
    Field("port", INT32, "16+"),
    Field("rack", STRING, "16+", nullable="16+", default=None),
)

RESPONSE = Struct(
    "FetchResponse",
    Field("throttle_time_ms", INT32, "1+", ignorable=True),
    Field("error_code", INT16, "7+", ignorable=True),
    Field("session_id", INT32, "7+"),
    Field("responses", Array(FETCHABLE_TOPIC_RESPONSE)),
    Field("node_endpoints", Array(NODE_ENDPOINT), "16+", tag=0),
)

API = Api(
    key=1,
    name="Fetch",
    versions="0-17",
    flexible="12+",
    request=REQUEST,
    response=RESPONSE,
)
