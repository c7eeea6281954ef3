"""The policy for new topics: a Python entry point that barnabas.create.topic.policy names (C10).

A package offers one as `[project.entry-points."barnabas.create_topic_policy"]` with the line
`small = "my_package:nothing_big"`: a callable that takes a `TopicPlan` and returns the reason
against it, or None. It runs on the broker's loop: while it thinks, everybody waits.
"""

from importlib.metadata import entry_points
from typing import cast

from barnabas.core.administration.creation import CreateTopicPolicy
from barnabas.node.output import EXIT_USAGE, ProgramError

GROUP = "barnabas.create_topic_policy"
KEY = "barnabas.create.topic.policy"


def load_create_topic_policy(name: str | None) -> CreateTopicPolicy | None:
    """The policy of this name; `ProgramError` when there is none or it cannot be loaded."""
    if not name:
        return None
    offered = entry_points(group=GROUP)
    found = {entry.value: entry for entry in offered if entry.name == name}
    if not found:
        names = ", ".join(sorted({entry.name for entry in offered}))
        raise _refusal(name, f"no entry point of {GROUP} has this name; there are: {names or '-'}")
    if len(found) > 1:
        raise _refusal(name, f"several entry points have this name: {', '.join(sorted(found))}")
    ((value, entry),) = found.items()
    try:
        policy: object = entry.load()
    except (Exception, SystemExit) as problem:
        raise _refusal(name, f"{value}: {type(problem).__name__}: {problem}") from None
    if not callable(policy):
        raise _refusal(name, f"{value} cannot be called")
    return cast(CreateTopicPolicy, policy)


def _refusal(name: str, cause: str) -> ProgramError:
    return ProgramError(
        f"{KEY}={name}",
        cause=cause,
        fix=f"install the package that offers it beside barnabas, or remove {KEY}",
        see="create-topic-policy",
        exit_code=EXIT_USAGE,
    )
