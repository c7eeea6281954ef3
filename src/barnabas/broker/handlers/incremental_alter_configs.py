"""IncrementalAlterConfigs: single settings of topics and brokers are set, removed or edited."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.administration import TopicAnswer
from barnabas.broker.connections import Request
from barnabas.core.administration.alteration import Alteration, ConfigEdit
from barnabas.formats.wire.generated.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def handle(
    broker: Broker, request: Request, body: IncrementalAlterConfigsRequest, now_ms: int
) -> None:
    """Answer when everything is written."""
    wishes = [
        Alteration(
            resource.resource_type,
            resource.resource_name,
            [ConfigEdit(one.name, one.config_operation, one.value) for one in resource.configs],
        )
        for resource in body.resources
    ]

    def on_answers(answers: list[TopicAnswer], answered_ms: int) -> None:
        responses = [
            AlterConfigsResourceResponse(
                error_code=answer.error,
                error_message=answer.message,
                resource_type=wish.resource_type,
                resource_name=wish.name,
            )
            for wish, answer in zip(wishes, answers, strict=True)
        ]
        broker.answer(request, IncrementalAlterConfigsResponse(responses=responses))

    broker.config_alterations.alter(
        wishes, is_validation=body.validate_only, then=on_answers, now_ms=now_ms
    )
