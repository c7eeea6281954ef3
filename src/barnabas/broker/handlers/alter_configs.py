"""AlterConfigs: all settings of a topic or a broker are replaced by those that are named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.administration import TopicAnswer
from barnabas.broker.connections import Request
from barnabas.core.administration.alteration import Alteration, ConfigEdit, ConfigOperation
from barnabas.formats.wire.generated.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def handle(broker: Broker, request: Request, body: AlterConfigsRequest, now_ms: int) -> None:
    """Answer when everything is written."""
    wishes = [
        Alteration(
            resource.resource_type,
            resource.resource_name,
            [ConfigEdit(one.name, ConfigOperation.SET, one.value) for one in resource.configs],
            is_replacement=True,
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
        broker.answer(request, AlterConfigsResponse(responses=responses))

    broker.config_alterations.alter(
        wishes, is_validation=body.validate_only, then=on_answers, now_ms=now_ms
    )
