"""Picks a program before it imports one: `barnabas broker`, `barnabas topics`, and the rest."""

import gc
import os
import sys
from importlib import import_module

from barnabas import __version__
from barnabas.node.output import EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE, ProgramError, report, say

PROGRAMS = {
    "up": ("barnabas.node.up", "a broker to try things on, ready in a moment"),
    "topics": ("barnabas.admin.cli.topics", "list, describe, create, alter, delete topics"),
    "produce": ("barnabas.admin.cli.produce", "lines of the input become records of a topic"),
    "consume": ("barnabas.admin.cli.consume", "records of a topic, as they are or come"),
    "groups": ("barnabas.admin.cli.groups", "consumer groups, their lag, their offsets"),
    "status": ("barnabas.admin.cli.status", "brokers, controller, what is not as it should be"),
    "broker": ("barnabas.node.main", "one broker from a server.properties"),
    "configs": ("barnabas.admin.cli.configs", "settings of topics and brokers"),
    "log": ("barnabas.admin.cli.log", "what is in the files of a log, offline"),
    "completion": ("barnabas.admin.cli.completion", "completion for bash, zsh and fish"),
    "kafka-topics": ("barnabas.admin.kafka_scripts.kafka_topics", "as bin/kafka-topics.sh"),
    "kafka-configs": ("barnabas.admin.kafka_scripts.kafka_configs", "as bin/kafka-configs.sh"),
    "kafka-consumer-groups": (
        "barnabas.admin.kafka_scripts.kafka_consumer_groups",
        "as bin/kafka-consumer-groups.sh",
    ),
}
"""The first ones are what a newcomer needs, and what bare `barnabas` prints."""

FIRST = 6
COMPLETION_VARIABLE = "_BARNABAS_COMPLETE"


def main() -> int:
    """Run the program that the first argument names; its exit code."""
    arguments = sys.argv[1:]
    if COMPLETION_VARIABLE in os.environ:
        return int(import_module(PROGRAMS["completion"][0]).complete())
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print_programs(is_all=bool(arguments))
        return EXIT_OK
    if arguments[0] == "--version":
        say(f"barnabas {__version__}")
        return EXIT_OK
    program = PROGRAMS.get(arguments[0])
    if program is None:
        return _refuse(arguments[0])
    # Nothing that an import makes is garbage; a program that goes on collects again once it serves.
    gc.disable()
    try:
        return int(import_module(program[0]).main(arguments[1:]))
    except KeyboardInterrupt:
        # Before the program took signals into its own hands.
        return EXIT_INTERRUPTED


def print_programs(*, is_all: bool) -> None:
    """What there is, in a few lines."""
    say("barnabas: a replicated log that speaks Kafka's protocol\n")
    names = list(PROGRAMS)
    for name in names if is_all else names[:FIRST]:
        say(f"  barnabas {name:{21 if is_all else 8}}  {PROGRAMS[name][1]}")
    if is_all:
        say("\n`barnabas PROGRAM --help` tells more of each.")
    else:
        say("\n`barnabas --help` lists all of them, `barnabas PROGRAM --help` tells more of each.")


def _refuse(name: str) -> int:
    from difflib import get_close_matches

    near = get_close_matches(name, PROGRAMS, n=1)
    fix = f"barnabas {near[0]}" if near else "barnabas --help"
    report(ProgramError(f"barnabas {name}: there is no such program", fix=fix, see="usage"))
    return EXIT_USAGE


if __name__ == "__main__":
    sys.exit(main())
