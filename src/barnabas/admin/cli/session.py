"""A command's conversation with a cluster: operations carried out, results printed."""

from types import TracebackType
from typing import Self, TypeVar

from barnabas.admin.addresses import parse_addresses
from barnabas.admin.cli.program import Printer
from barnabas.admin.failures import unknown_topic
from barnabas.client.metadata import TopicMetadata
from barnabas.client.retries import RetryPolicy
from barnabas.client.routing import Cluster
from barnabas.client.steps import Operation
from barnabas.model.error_codes import ErrorCode
from barnabas.node.blocking_client import BlockingClient

T = TypeVar("T")


class Session(Printer):
    """A connected client, and where its results go."""

    def __init__(self, bootstrap: str, timeout: float, kind: str) -> None:
        super().__init__(kind)
        timeout_ms = max(1, int(timeout * 1000))
        policy = RetryPolicy(timeout_ms=timeout_ms, request_timeout_ms=timeout_ms)
        self.client = BlockingClient(parse_addresses(bootstrap), policy=policy)

    @property
    def cluster(self) -> Cluster:
        return self.client.cluster

    def run(self, operation: Operation[T]) -> T:
        """Carry out one operation."""
        return self.client.run(operation)

    def find_topic(self, name: str) -> TopicMetadata:
        """A topic that must be there."""
        told = self.run(self.cluster.describe([name]))
        topic = told.topics.get(name)
        if topic is not None and topic.code is ErrorCode.NONE:
            return topic
        raise unknown_topic(name, self.run(self.cluster.describe(None)).topics)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.client.close()
