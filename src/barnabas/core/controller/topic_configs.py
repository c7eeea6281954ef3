"""The one topic setting that an election asks for."""

from collections.abc import Iterable

from barnabas.core.controller.context import ControllerContext
from barnabas.core.controller.effects import Procedure, Wanted
from barnabas.formats.znodes.configs import config_from_bytes, config_path, topic_entity
from barnabas.model.config_definition import parse
from barnabas.model.errors import ConfigRefused, DecodeError
from barnabas.model.topic_config_keys import TOPIC_KEYS
from barnabas.model.znode import GetData, Outcome

UNCLEAN_LEADER_ELECTION_ENABLE = "unclean.leader.election.enable"


def read_unclean_election_enabled(
    context: ControllerContext, topics: Iterable[str]
) -> Procedure[dict[str, bool]]:
    """Whether each topic would rather have a leader that lacks records than none."""
    reads = {topic: GetData(config_path(topic_entity(topic))) for topic in topics}
    if not reads:
        return {}
    answer = yield Wanted(reads=tuple(reads.values()))
    default = context.settings.unclean_leader_election_enable
    return {
        topic: is_unclean_election_enabled(read.path, outcome, default)
        for (topic, read), outcome in zip(reads.items(), answer.reads, strict=True)
    }


def is_unclean_election_enabled(path: str, outcome: Outcome, default: bool) -> bool:
    """What a topic's config node says; the broker's value where it says nothing that is valid."""
    if not outcome.is_ok:
        return default
    try:
        text = config_from_bytes(path, outcome.data).get(UNCLEAN_LEADER_ELECTION_ENABLE)
        if text is None:
            return default
        return parse(TOPIC_KEYS[UNCLEAN_LEADER_ELECTION_ENABLE], text) is True
    except (DecodeError, ConfigRefused):
        return default
