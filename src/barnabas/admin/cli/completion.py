"""`barnabas completion`: what a shell has to read once, and the completions themselves."""

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


class Programs(click.Group):
    """All programs as one group; each is imported when its name is on the command line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted((*NOUNS, *OTHERS))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in NOUNS:
            module = import_module(f"barnabas.admin.cli.{cmd_name}")
            return getattr(module, cmd_name, None)
        return click.Command(cmd_name) if cmd_name in OTHERS else None


def main(arguments: Sequence[str]) -> int:
    """Run the program; its exit code."""
    return run(completion, "completion", arguments)


def complete() -> int:
    """Answer a shell, which says in the environment what it wants; an exit code."""
    import os

    instruction = os.environ[VARIABLE]
    shell, _, what = instruction.partition("_")
    kind = get_completion_class(shell)
    if kind is None or what != "complete":
        return EXIT_FAILED
    say(kind(Programs("barnabas"), {}, "barnabas", VARIABLE).complete())
    return EXIT_OK


@click.command(
    help="Print what makes a shell complete commands, options, topics and groups: "
    'eval "$(barnabas completion bash)" in its start file.'
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    kind = get_completion_class(shell)
    assert kind is not None
    say(kind(Programs("barnabas"), {}, "barnabas", VARIABLE).source())
