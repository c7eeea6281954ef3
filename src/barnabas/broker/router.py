"""From a frame to its handler and back: the one place where APIs are listed."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from librt.strings import BytesWriter, write_i32_be

from barnabas.broker.connections import Connection, Request
from barnabas.broker.event_stream import RequestFailed
from barnabas.formats.codec.records import Cut
from barnabas.formats.wire import catalog
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.framing import put_length, split_at_cuts
from barnabas.formats.wire.headers import decode_request_header
from barnabas.model.errors import DecodeError
from barnabas.model.invariant import InvariantViolated

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.connections import Parts


class Served(NamedTuple):
    """An API that has a handler which does the work, and the versions it does it for."""

    handler: str
    min_version: int
    max_version: int


SERVED: dict[ApiKey, Served] = {
    ApiKey.PRODUCE: Served("produce", 0, 11),
    ApiKey.FETCH: Served("fetch", 0, 17),
    ApiKey.LIST_OFFSETS: Served("list_offsets", 0, 9),
    ApiKey.METADATA: Served("metadata", 0, 12),
    ApiKey.LEADER_AND_ISR: Served("leader_and_isr", 0, 7),
    ApiKey.STOP_REPLICA: Served("stop_replica", 0, 4),
    ApiKey.UPDATE_METADATA: Served("update_metadata", 0, 8),
    ApiKey.OFFSET_COMMIT: Served("offset_commit", 0, 9),
    ApiKey.OFFSET_FETCH: Served("offset_fetch", 0, 9),
    ApiKey.FIND_COORDINATOR: Served("find_coordinator", 0, 6),
    ApiKey.JOIN_GROUP: Served("join_group", 0, 9),
    ApiKey.HEARTBEAT: Served("heartbeat", 0, 4),
    ApiKey.LEAVE_GROUP: Served("leave_group", 0, 5),
    ApiKey.SYNC_GROUP: Served("sync_group", 0, 5),
    ApiKey.DESCRIBE_GROUPS: Served("describe_groups", 0, 5),
    ApiKey.LIST_GROUPS: Served("list_groups", 0, 5),
    ApiKey.API_VERSIONS: Served("api_versions", 0, 4),
    ApiKey.CREATE_TOPICS: Served("create_topics", 0, 7),
    ApiKey.DELETE_TOPICS: Served("delete_topics", 0, 6),
    ApiKey.DELETE_RECORDS: Served("delete_records", 0, 2),
    ApiKey.INIT_PRODUCER_ID: Served("init_producer_id", 0, 5),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Served("offset_for_leader_epoch", 0, 4),
    ApiKey.DESCRIBE_CONFIGS: Served("describe_configs", 0, 4),
    ApiKey.ALTER_CONFIGS: Served("alter_configs", 0, 2),
    ApiKey.DESCRIBE_LOG_DIRS: Served("describe_log_dirs", 0, 4),
    ApiKey.CREATE_PARTITIONS: Served("create_partitions", 0, 3),
    ApiKey.DELETE_GROUPS: Served("delete_groups", 0, 2),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Served("incremental_alter_configs", 0, 1),
    ApiKey.OFFSET_DELETE: Served("offset_delete", 0, 0),
    ApiKey.DESCRIBE_CLUSTER: Served("describe_cluster", 0, 1),
    ApiKey.DESCRIBE_PRODUCERS: Served("describe_producers", 0, 0),
}
"""ApiVersions answers exactly this; a handler's module is imported on its first request."""


_API_KEYS = frozenset(int(key) for key in ApiKey)

Handle = Callable[["Broker", Request, Any, int], Any]


class Route:
    """Everything that one version of one API needs, looked up once."""

    __slots__ = ("api_key", "api_version", "decode", "encode", "handle", "has_tagged_header")

    def __init__(self, api_key: ApiKey, api_version: int, handle: Handle) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.handle = handle
        self.decode = catalog.request_decoder(api_key, api_version)
        self.encode = catalog.response_encoder(api_key, api_version)
        self.has_tagged_header: bool = (
            catalog.APIS[api_key].response_header_version(api_version) >= 1
        )


class Router:
    """Takes frames of connections to handlers and their responses back to the connections."""

    __slots__ = ("_broker", "_routes")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._routes: dict[int, Route] = {}

    def on_request(
        self, connection: Connection, data: bytes, start: int, end: int, now_ms: int
    ) -> None:
        """Decode and handle one frame; whatever it holds, only its connection can suffer."""
        try:
            api_key, api_version, correlation_id, client_id, body_start = decode_request_header(
                data, start, end
            )
            route = self._routes.get(api_key << 16 | api_version)
            if route is None:
                if self._is_unsupported_api_versions(api_key, api_version):
                    self._answer_unsupported(connection, correlation_id, end - start)
                    return
                route = self._find_route(api_key, api_version)
            body = route.decode(data, body_start, end)
        except DecodeError as problem:
            self._broker.refuse(connection, str(problem), now_ms)
            return
        request = connection.open_request(
            api_key, api_version, correlation_id, client_id, end - start
        )
        try:
            response = route.handle(self._broker, request, body, now_ms)
            if response is not None:
                self.answer(request, response)
        except Exception as bug:
            # The edge where a bug met in one request is kept to the connection that sent it:
            # a request that hits a bug everywhere must not take every broker down in turn.
            self.fail(request, bug, now_ms)

    def answer(self, request: Request, response: Any) -> None:
        """Encode a response and let its connection send it when its turn comes.

        Many answers come long after their request; one that cannot be encoded is a bug that, too,
        stays with the connection it is for.
        """
        try:
            parts = self._encode(request, response)
        except Exception as bug:
            self.fail(request, bug, self._broker.now_ms)
            return
        request.connection.answer(request, parts)

    def _encode(self, request: Request, response: Any) -> Parts:
        route = self._routes[request.api_key << 16 | request.api_version]
        writer = BytesWriter()
        write_i32_be(writer, 0)
        write_i32_be(writer, request.correlation_id)
        if route.has_tagged_header:
            writer.append(0)
        cuts: list[Cut] = []
        route.encode(writer, response, cuts)
        if not cuts:
            put_length(writer, 0)
            return [writer.getvalue()]
        put_length(writer, sum(content.size_bytes for _, content in cuts))
        # Records outside memory are always slices of this broker's files.
        return cast("Parts", split_at_cuts(writer.getvalue(), cuts))

    def _find_route(self, api_key: int, api_version: int) -> Route:
        key = ApiKey(api_key) if api_key in _API_KEYS else None
        served = None if key is None else SERVED.get(key)
        if key is None or served is None:
            raise DecodeError(f"{catalog.describe_key(api_key)} is not served")
        if not served.min_version <= api_version <= served.max_version:
            raise DecodeError(
                f"{catalog.APIS[api_key].name} version {api_version} is not served, "
                f"only {served.min_version} to {served.max_version}"
            )
        module = import_module(f"barnabas.broker.handlers.{served.handler}")
        route = Route(key, api_version, module.handle)
        self._routes[api_key << 16 | api_version] = route
        return route

    def _is_unsupported_api_versions(self, api_key: int, api_version: int) -> bool:
        served = SERVED[ApiKey.API_VERSIONS]
        if api_key != ApiKey.API_VERSIONS:
            return False
        return not served.min_version <= api_version <= served.max_version

    def _answer_unsupported(self, connection: Connection, correlation_id: int, size: int) -> None:
        """A client newer than us gets version 0's layout, so that it can read what to ask for."""
        request = connection.open_request(ApiKey.API_VERSIONS, 0, correlation_id, None, size)
        key = ApiKey.API_VERSIONS << 16
        if key not in self._routes:
            self._find_route(ApiKey.API_VERSIONS, 0)
        module = import_module("barnabas.broker.handlers.api_versions")
        self.answer(request, module.unsupported_version())

    def guarded(self, request: Request, call: Callable[..., None]) -> Callable[..., None]:
        """A call for later that works for this request alone: a bug in it ends its connection.

        A store, a deadline or a job that makes it would take the bug for one of the broker's own,
        which nobody can go on after.
        """

        def guarded_call(*arguments: Any) -> None:
            try:
                call(*arguments)
            except Exception as bug:
                self.fail(request, bug, self._broker.now_ms)

        return guarded_call

    def fail(self, request: Request, bug: Exception, now_ms: int) -> None:
        """A bug was met over a request: its connection ends, and nothing else."""
        story = str(bug) if isinstance(bug, InvariantViolated) else repr(bug)
        self._broker.events.publish(
            RequestFailed(request.connection.id, request.api_key, request.api_version, story, bug),
            now_ms,
        )
        self._broker.close_connection(request.connection)
