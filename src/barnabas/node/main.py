"""`barnabas broker server.properties`: one broker, until it is told to stop."""

import os
from collections.abc import Sequence

from barnabas.node.arguments import Arguments
from barnabas.node.output import ProgramError, report, say, warn


def main(arguments: Sequence[str]) -> int:
    """Run the program; its exit code."""
    try:
        return _run(arguments)
    except ProgramError as error:
        report(error)
        return error.exit_code


def _run(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    # The configuration is judged before anything heavy is imported or any port opened.
    from barnabas.node.settings import load_settings

    settings = load_settings(
        options.properties, os.environ, options.override, options.accept_unsupported
    )
    for warning in settings.warnings:
        warn(warning)
    from barnabas.node.broker_process import BrokerProcess

    return BrokerProcess(settings.config, say_started, is_verbose=options.verbose).run()


def say_started(broker_id: int) -> None:
    """Kafka's own line: scripts and test fixtures wait for it."""
    say(f"[KafkaServer id={broker_id}] started")


def _parser() -> Arguments:
    parser = Arguments("barnabas broker", "Run one broker until SIGTERM.")
    parser.add_argument("properties", metavar="server.properties", help="Kafka's keys and syntax")
    parser.add_argument(
        "--override",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="beats the file and the environment (KAFKA_NUM_PARTITIONS=3 sets num.partitions)",
    )
    parser.add_argument(
        "--accept-unsupported",
        metavar="KEY",
        action="append",
        default=[],
        help="start although this key asks for something that this broker does not do",
    )
    parser.add_argument("--verbose", action="store_true", help="write every event to stderr")
    return parser
