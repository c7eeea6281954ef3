"""Live names for completion: topics and groups of the cluster that the command line names."""

import click

from barnabas.admin.cli.program import BOOTSTRAP_VARIABLE, DEFAULT_BOOTSTRAP, Session
from barnabas.client.errors import ClientError

SECONDS = 1.0


def topic_names(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Topics that begin like that; none when no cluster answers at once."""
    with _session(context) as session:
        try:
            told = session.run(session.cluster.describe(None))
        except ClientError:
            return []
        return sorted(name for name in told.topics if name.startswith(begun))


def group_names(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Groups that begin like that; none when no cluster answers at once."""
    from barnabas.client.groups import list_groups

    with _session(context) as session:
        try:
            groups = session.run(list_groups(session.cluster))
        except ClientError:
            return []
        return [group.group_id for group in groups if group.group_id.startswith(begun)]


def _session(context: click.Context) -> Session:
    import os

    given = context.params.get("bootstrap_server")
    bootstrap = given or os.environ.get(BOOTSTRAP_VARIABLE) or DEFAULT_BOOTSTRAP
    return Session(str(bootstrap), SECONDS, "text")
