"""Alterations of settings when the store has no ear for them."""

from types import SimpleNamespace
from typing import Any

from barnabas.broker.administration import TopicAnswer
from barnabas.broker.config_alterations import ConfigAlterations
from barnabas.core.administration.alteration import TOPIC, Alteration, ConfigEdit, ConfigOperation
from barnabas.model.error_codes import ErrorCode
from barnabas.model.znode import Outcome, StoreAnswer, StoreError

LOST = StoreAnswer(0, (Outcome(StoreError.CONNECTION_LOSS),))


def test_a_full_line_to_the_store_answers_thousands_at_once() -> None:
    broker: Any = SimpleNamespace(
        broker_id=1,
        metadata_cache=SimpleNamespace(topic=lambda name: name),
        client_metadata=SimpleNamespace(submit=lambda _, then: then(LOST, 7)),
    )
    edit = ConfigEdit("flush.ms", ConfigOperation.SET, "5")
    wishes = [Alteration(TOPIC, f"t{number}", [edit]) for number in range(3000)]
    told: list[tuple[list[TopicAnswer], int]] = []
    ConfigAlterations(broker).alter(
        wishes, is_validation=False, then=lambda *answered: told.append(answered), now_ms=7
    )
    ((answers, now_ms),) = told
    assert [one.error for one in answers] == [ErrorCode.REQUEST_TIMED_OUT] * 3000
    assert now_ms == 7
