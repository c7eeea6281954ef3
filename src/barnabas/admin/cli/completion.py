"""`barnabas completion`: what a shell has to read once, and the completions themselves."""

import os
from collections.abc import Sequence
from importlib import import_module

import click
from click.shell_completion import get_completion_class

from barnabas.admin.cli.program import run
from barnabas.node.output import EXIT_FAILED, EXIT_OK, say

VARIABLE = "_BARNABAS_COMPLETE"
NOUNS = ("topics", "configs", "groups", "produce", "consume", "log", "status", "completion")
OTHERS = ("up", "broker", "kafka-topics", "kafka-configs", "kafka-consumer-groups")
"""Programs with a command line of their own: completed by name alone."""


def programs(words: Sequence[str]) -> click.Group:
    """All programs as one group; only what is among the words is imported."""
    group = click.Group("barnabas")
    for name in (*NOUNS, *OTHERS):
        command = click.Command(name)
        if name in NOUNS and name in words:
            command = getattr(import_module(f"barnabas.admin.cli.{name}"), name)
        group.add_command(command, name)
    return group


def main(arguments: Sequence[str]) -> int:
    """Run the program; its exit code."""
    return run(completion, "completion", arguments)


def complete() -> int:
    """Answer a shell, which says in the environment what it wants; an exit code."""
    shell, _, what = os.environ[VARIABLE].partition("_")
    kind = get_completion_class(shell)
    if kind is None or what != "complete":
        return EXIT_FAILED
    group = programs(os.environ.get("COMP_WORDS", "").split())
    say(kind(group, {}, "barnabas", VARIABLE).complete())
    return EXIT_OK


@click.command(
    help="Print what makes a shell complete commands, options, topics and groups: "
    'eval "$(barnabas completion bash)" in its start file.'
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    kind = get_completion_class(shell)
    assert kind is not None
    say(kind(programs(()), {}, "barnabas", VARIABLE).source())
