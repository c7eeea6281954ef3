"""DeleteGroups: groups without members go, with their offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.connections import Request
from barnabas.formats.wire.generated.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from barnabas.model.error_codes import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def handle(broker: Broker, request: Request, body: DeleteGroupsRequest, now_ms: int) -> None:
    """Take each to its shard; the answer leaves when all of them are done."""

    def answer(errors: dict[str, ErrorCode]) -> None:
        broker.answer(
            request,
            DeleteGroupsResponse(
                results=[
                    DeletableGroupResult(group_id=group_id, error_code=errors[group_id])
                    for group_id in dict.fromkeys(body.groups_names)
                ]
            ),
        )

    broker.groups.delete_groups(body.groups_names, answer, now_ms)
