"""Live names for completion: topics and groups of the cluster that the command line names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from barnabas.admin.cli.program import BOOTSTRAP_VARIABLE, DEFAULT_BOOTSTRAP

if TYPE_CHECKING:
    from barnabas.admin.cli.session import Session

SECONDS = 1.0


def topic_names(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Topics that begin like that; none when no cluster answers at once."""
    from barnabas.client.errors import ClientError

    with _session(context) as session:
        try:
            told = session.run(session.cluster.describe(None))
        except ClientError:
            return []
        return sorted(name for name in told.topics if name.startswith(begun))


def group_names(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Groups that begin like that; none when no cluster answers at once."""
    from barnabas.client.errors import ClientError
    from barnabas.client.groups import list_groups

    with _session(context) as session:
        try:
            groups = session.run(list_groups(session.cluster))
        except ClientError:
            return []
        return [group.group_id for group in groups if group.group_id.startswith(begun)]


def _session(context: click.Context) -> Session:
    from barnabas.admin.cli.session import Session

    given = context.params.get("bootstrap_server")
    bootstrap = given or os.environ.get(BOOTSTRAP_VARIABLE) or DEFAULT_BOOTSTRAP
    return Session(str(bootstrap), SECONDS, "text")
