"""ApiVersions, the router and the codec name the same APIs and versions, those of Kafka 3.9."""

import struct
from importlib import import_module
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.broker.connections import Connection, Request
from barnabas.broker.event_stream import ConnectionRefused
from barnabas.broker.handlers import api_versions
from barnabas.broker.metadata_cache import MetadataCache
from barnabas.broker.ports import ConnectionId, Transport
from barnabas.broker.router import SERVED, Route
from barnabas.formats.wire import catalog
from barnabas.formats.wire.api_keys import NAMES_WITHOUT_SCHEMA, ApiKey
from barnabas.formats.wire.generated.api_versions import ApiVersionsRequest
from barnabas.model.error_codes import ErrorCode
from tests.worlds.virtual_world import VirtualWorld

ZOOKEEPER_PROFILE_3_9 = {
    "PRODUCE": (0, 11),
    "FETCH": (0, 17),
    "LIST_OFFSETS": (0, 9),
    "METADATA": (0, 12),
    "LEADER_AND_ISR": (0, 7),
    "STOP_REPLICA": (0, 4),
    "UPDATE_METADATA": (0, 8),
    "OFFSET_COMMIT": (0, 9),
    "OFFSET_FETCH": (0, 9),
    "FIND_COORDINATOR": (0, 6),
    "JOIN_GROUP": (0, 9),
    "HEARTBEAT": (0, 4),
    "LEAVE_GROUP": (0, 5),
    "SYNC_GROUP": (0, 5),
    "DESCRIBE_GROUPS": (0, 5),
    "LIST_GROUPS": (0, 5),
    "API_VERSIONS": (0, 4),
    "CREATE_TOPICS": (0, 7),
    "DELETE_TOPICS": (0, 6),
    "DELETE_RECORDS": (0, 2),
    "INIT_PRODUCER_ID": (0, 5),
    "OFFSET_FOR_LEADER_EPOCH": (0, 4),
    "DESCRIBE_CONFIGS": (0, 4),
    "ALTER_CONFIGS": (0, 2),
    "DESCRIBE_LOG_DIRS": (0, 4),
    "CREATE_PARTITIONS": (0, 3),
    "DELETE_GROUPS": (0, 2),
    "INCREMENTAL_ALTER_CONFIGS": (0, 1),
    "OFFSET_DELETE": (0, 0),
    "DESCRIBE_CLUSTER": (0, 1),
    "DESCRIBE_PRODUCERS": (0, 0),
}
"""What a 3.9 broker in ZooKeeper mode advertises of the APIs that are served here."""


def ask(version: int, body: ApiVersionsRequest) -> Any:
    """What the handler answers, on a connection of its own."""
    connection = Connection(ConnectionId(1), "PLAINTEXT", "host", cast("Transport", None))
    request = Request(connection, 0, ApiKey.API_VERSIONS, version, 1, None, 1)
    broker: Any = SimpleNamespace(metadata_cache=MetadataCache())
    return api_versions.handle(broker, request, body, 0), connection


def test_the_router_serves_the_profile() -> None:
    served = {key.name: (row.min_version, row.max_version) for key, row in SERVED.items()}
    assert served == ZOOKEEPER_PROFILE_3_9


def test_the_answer_lists_exactly_what_the_router_serves() -> None:
    response, _ = ask(0, ApiVersionsRequest())
    assert response.error_code == ErrorCode.NONE
    answered = {
        ApiKey(entry.api_key).name: (entry.min_version, entry.max_version)
        for entry in response.api_keys
    }
    assert answered == ZOOKEEPER_PROFILE_3_9
    assert [entry.api_key for entry in response.api_keys] == sorted(int(key) for key in SERVED)


@pytest.mark.parametrize(
    ("key", "told"),
    [
        (24, "AddPartitionsToTxn (api key 24) is not served"),
        (26, "EndTxn (api key 26) is not served"),
        (68, "ConsumerGroupHeartbeat (api key 68) is not served"),
        (999, "api key 999 is not served"),
        (-1, "api key -1 is not served"),
    ],
)
def test_what_is_not_served_is_told_by_its_name(key: int, told: str) -> None:
    host = VirtualWorld().add_broker(1)
    host.broker.on_connection(ConnectionId(99), "PLAINTEXT", "host", 0)
    frame = struct.pack(">hhih", key, 0, 1, -1)
    host.broker.on_request(ConnectionId(99), frame, 0, len(frame), 0)
    assert [event.reason for event in host.told.of(ConnectionRefused)] == [told]


def test_no_api_has_two_names() -> None:
    assert not {int(key) for key in catalog.APIS} & set(NAMES_WITHOUT_SCHEMA)


@pytest.mark.parametrize("key", sorted(SERVED), ids=lambda key: key.name)
def test_every_served_version_has_its_handler_and_its_codec(key: ApiKey) -> None:
    row = SERVED[key]
    handle = import_module(f"barnabas.broker.handlers.{row.handler}").handle
    for version in range(row.min_version, row.max_version + 1):
        route = Route(key, version, handle)
        assert route.decode is catalog.request_decoder(key, version)
        assert route.encode is catalog.response_encoder(key, version)


def test_a_version_above_ours_is_told_what_to_come_back_with() -> None:
    response = api_versions.unsupported_version()
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(one.api_key, one.min_version, one.max_version) for one in response.api_keys] == [
        (ApiKey.API_VERSIONS, 0, 4)
    ]


@pytest.mark.parametrize(
    ("name", "version", "error"),
    [
        ("librdkafka", "2.16.1", ErrorCode.NONE),
        ("a", "1", ErrorCode.NONE),
        ("", "1", ErrorCode.INVALID_REQUEST),
        ("with space", "1", ErrorCode.INVALID_REQUEST),
        ("-dash", "1", ErrorCode.INVALID_REQUEST),
        ("ok", "1.", ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_client_names_itself_from_version_3_on(name: str, version: str, error: ErrorCode) -> None:
    body = ApiVersionsRequest(client_software_name=name, client_software_version=version)
    response, connection = ask(3, body)
    assert response.error_code == error
    assert connection.client_software_name == (name if error is ErrorCode.NONE else "")
    response, _ = ask(2, body)
    assert response.error_code == ErrorCode.NONE
