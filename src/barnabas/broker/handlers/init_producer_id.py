"""InitProducerId: a number for an idempotent producer, never given to another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.connections import Request
from barnabas.formats.wire.generated.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import NO_PRODUCER_ID, ProducerId

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

NO_PRODUCER_EPOCH: Final = -1


def handle(
    broker: Broker, request: Request, body: InitProducerIdRequest, now_ms: int
) -> InitProducerIdResponse | None:
    """Answer with a fresh id and epoch 0, as soon as a block of ids is at hand."""
    has_id = body.producer_id != NO_PRODUCER_ID
    has_epoch = body.producer_epoch != NO_PRODUCER_EPOCH
    if has_id != has_epoch or body.transactional_id == "":
        return _refused(ErrorCode.INVALID_REQUEST)
    if body.transactional_id is not None:
        # Nothing here coordinates transactions: a code that no client retries says so at once.
        return _refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)

    def answer(producer_id: ProducerId | None, answered_ms: int) -> None:
        if producer_id is None:
            broker.answer(request, _refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        else:
            broker.answer(request, InitProducerIdResponse(producer_id=producer_id))

    broker.producer_ids.next_id(broker.router.guarded(request, answer))
    return None


def _refused(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        error_code=error, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
    )
