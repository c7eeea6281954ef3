"""DescribeCluster: the brokers, the controller and the cluster id."""

from barnabas.formats.codec.schema import (
    BOOL,
    BROKER_ID,
    INT8,
    INT16,
    INT32,
    STRING,
    Api,
    Array,
    Field,
    Struct,
)

REQUEST = Struct(
    "DescribeClusterRequest",
    Field("include_cluster_authorized_operations", BOOL),
    Field("endpoint_type", INT8, "1+", default=1),
)

DESCRIBE_CLUSTER_BROKER = Struct(
    "DescribeClusterBroker",
    Field("broker_id", BROKER_ID),
    Field("host", STRING),
    Field("port", INT32),
    Field("rack", STRING, nullable="0+", default=None),
)

RESPONSE = Struct(
    "DescribeClusterResponse",
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable="0+", default=None),
    Field("endpoint_type", INT8, "1+", default=1),
    Field("cluster_id", STRING),
    Field("controller_id", BROKER_ID, default=-1),
    Field("brokers", Array(DESCRIBE_CLUSTER_BROKER)),
    Field("cluster_authorized_operations", INT32, default=-2147483648),
)

API = Api(
    key=60,
    name="DescribeCluster",
    versions="0-1",
    flexible="0+",
    request=REQUEST,
    response=RESPONSE,
)
