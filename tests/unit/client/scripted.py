"""Drives operations in virtual time against brokers that are functions."""

from collections.abc import Callable
from typing import TypeVar

from barnabas.client.connection import choose_version
from barnabas.client.steps import (
    Address,
    Answer,
    Failure,
    FailureKind,
    Operation,
    Outcome,
    Pause,
    Request,
    Response,
)
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.formats.wire.catalog import Message, find_api
from barnabas.formats.wire.generated.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

T = TypeVar("T")

Serve = Callable[[int, Message], Message | Failure]
"""Takes a version and a request's body."""

ONE, TWO = Address("one", 9092), Address("two", 9092)
REFUSED = Failure(FailureKind.NOT_CONNECTED, "Connection refused")


class Scripted:
    """Who listens where, what each answers, and what was asked of whom."""

    def __init__(self, max_version: int | None = None) -> None:
        self.now_ms = 1_000
        self.asked: list[tuple[Address, ApiKey, Message]] = []
        self.pauses_ms: list[int] = []
        self.served: dict[tuple[Address, ApiKey], Serve] = {}
        self.leaders = {"t": [1, 2]}
        self.controller_id = 1
        self.brokers = {1: ONE, 2: TWO}
        self._max_version = max_version
        for address in (ONE, TWO):
            self.serve(address, ApiKey.METADATA, self._metadata)

    def serve(self, address: Address, api_key: ApiKey, answer: Serve) -> None:
        self.served[address, api_key] = answer

    def answers(self, address: Address, api_key: ApiKey, *answers: Message | Failure) -> None:
        """Answers for one request after the other, the last one for all that follow."""
        left = list(answers)
        self.serve(address, api_key, lambda version, body: left.pop(0) if left[1:] else left[0])

    def run(self, operation: Operation[T]) -> T:
        try:
            step = next(operation)
            while True:
                answers: tuple[Answer, ...] = ()
                if isinstance(step, Pause):
                    self.pauses_ms.append(step.delay_ms)
                    self.now_ms += step.delay_ms
                else:
                    answers = tuple(self._ask(request) for request in step.requests)
                step = operation.send(Outcome(self.now_ms, answers))
        except StopIteration as end:
            return end.value

    def count(self, address: Address, api_key: ApiKey) -> int:
        return sum((at, key) == (address, api_key) for at, key, _ in self.asked)

    def _ask(self, request: Request) -> Answer:
        self.now_ms += 1
        serve = self.served.get((request.address, request.api_key))
        if serve is None:
            return REFUSED
        api = find_api(request.api_key)
        version = choose_version(api, (0, self._max_version or 99), request.max_version)
        assert version is not None
        body = request.build(version)
        self.asked.append((request.address, request.api_key, body))
        answer = serve(version, body)
        return answer if isinstance(answer, Failure) else Response(version, answer)

    def _metadata(self, version: int, body: Message) -> Message:
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=number, host=at.host, port=at.port)
                for number, at in self.brokers.items()
            ],
            controller_id=self.controller_id,
            topics=[
                MetadataResponseTopic(
                    error_code=0,
                    name=name,
                    partitions=[
                        MetadataResponsePartition(
                            error_code=0,
                            partition_index=index,
                            leader_id=leader,
                            leader_epoch=0,
                            replica_nodes=[1, 2],
                            isr_nodes=[1, 2],
                        )
                        for index, leader in enumerate(leaders)
                    ],
                )
                for name, leaders in self.leaders.items()
            ],
        )
