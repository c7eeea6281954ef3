"""Our scripts and Kafka 3.9.2's own, run against the same broker, say the same, line by line.

What changes something is run twice, on two topics whose names differ in one letter that is then
made the same. Of a usage error the first line is compared: what follows lists the options.
"""

import re
import shlex
from collections.abc import Iterator

import pytest

from barnabas.admin.addresses import parse_addresses
from barnabas.client.groups import commit_offsets
from barnabas.client.producer import NewRecord, Producer
from barnabas.client.topics import NewTopic, create_topics
from barnabas.model.ids import TopicPartition
from barnabas.node.blocking_client import BlockingClient
from tests.behaviours import behaviour
from tests.e2e.subjects import KAFKA, OURS, Subject, running_subject
from tests.oracles.kafka_tools import KafkaTools, Said, run_ours
from tests.tools import need

CREATE = """
--create --topic {t}a --partitions 2 --replication-factor 1
--create --topic {t}a --partitions 2 --replication-factor 1
--create --topic {t}a --if-not-exists
--create --topic {t}b --config retention.ms=1000 --config flush.ms=3 --config segment.ms=9
--create --topic {t}.c --replica-assignment 1,1,1
--create --topic {t}.c --replica-assignment 1
--create --topic {t}d --replica-assignment 1:1
--create --topic {t}d --replica-assignment 1,1:2
--create --topic {t}d --replica-assignment 9
--create --topic {t}d --replica-assignment x
--create --topic {t}e --config x=y
--create --topic {t}e --config retention.ms=abc
--create --topic {t}e --config retention.ms=-5
--create --topic {t}e --config preallocate=maybe
--create --topic {t}e --config cleanup.policy=keep
--create --topic {t}e --config compression.type=zip
--create --topic {t}e --config segment.bytes=99999999999
--create --topic {t}e --config retention.ms
--create --topic {t}d --partitions 0
--create --topic {t}d --replication-factor 0
--create --topic {t}d --replication-factor 32768
--create --topic {t}d --replication-factor 3
--create --topic {t}e --partitions x
--create --topic '{t} d'
--create --topic {t}d --partitions 1 --replica-assignment 1
--create --topic {t}d --if-exists
--create --partitions 1
"""

LOOK = """
--list --topic {t}.*
--list --topic {t}a,{t}b
--list --topic {t}a --exclude-internal
--list --partitions 1
--describe --topic {t}a
--describe --topic {t}b
--describe --topic {t}c|{t}a|{t}b
--describe --topic {t}.c
--describe --topic {t}nope
--describe --topic {t}nope --if-exists
--describe --if-exists
--describe --topic {t}.* --topics-with-overrides
--describe --topic {t}a --under-replicated-partitions
--describe --topic {t}a --unavailable-partitions
--describe --topic {t}a --under-min-isr-partitions
--describe --topic {t}a --at-min-isr-partitions
--describe --topic {t}a --at-min-isr-partitions --topics-with-overrides
--describe --topic-id AAAAAAAAAAAAAAAAAAAAAQ
--describe --topic (
"""

ALTER = """
--alter --topic {t}a --partitions 4
--alter --topic {t}a --partitions 4
--alter --topic {t}a --partitions 1
--alter --topic {t}a --partitions 6 --replica-assignment 1,1,1,1,1,1
--alter --topic {t}a --partitions 7 --replica-assignment 1,1,1,1,1,1,9
--alter --topic {t}a --partitions 8 --replica-assignment 1
--alter --topic {t}nope --partitions 4
--alter --topic {t}nope --partitions 4 --if-exists
--alter --topic {t}a
--alter --topic {t}a --partitions 4 --config retention.ms=1
--alter --topic {t}a --partitions 4 --replication-factor 1
--alter --topic {t}a --partitions 9 --exclude-internal
--describe --topic {t}a
"""

DELETE = """
--delete --topic {t}nope
--delete --topic {t}nope --if-exists
--delete --topic {t}a
--delete
--delete --topic {t}b --partitions 1
--delete --topic {t}.*
--list --topic {t}.*
"""

MISUSE = """
--topic {t}a
--list --describe
--list --nonsense
--list --topic
--version
"""

CONFIGS = """
--entity-type topics --entity-name {t}a --describe
--entity-type topics --entity-name {t}a --describe --all
--topic {t}a --describe
--entity-type topics --entity-name {t}nope --describe
--entity-type brokers --entity-name 1 --describe
--entity-type brokers --entity-default --describe
--entity-type brokers --entity-name x --describe
--entity-type nonsense --entity-name 1 --describe
--entity-name 1 --describe
--entity-type topics --entity-name {t}a
--entity-type topics --entity-name {t}a --alter
--entity-type topics --alter --add-config a=b
--entity-type topics --entity-name {t}a --alter --add-config a
--entity-type topics --entity-name {t}a --alter --add-config a;b=1
--entity-type topics --entity-name {t}a --alter --delete-config retention.ms
"""

ALTER_CONFIGS = """
--entity-type topics --entity-name {t}a --alter --add-config retention.ms=1000
--topic {t}a --alter --add-config cleanup.policy=[compact,delete],flush.ms=5
--entity-type topics --entity-name {t}a --describe
--entity-type topics --entity-name {t}a --alter --delete-config retention.ms,flush.ms
--entity-type topics --entity-name {t}a --alter --add-config x=y
--entity-type topics --entity-name {t}a --alter --add-config retention.ms=abc
--entity-type topics --entity-name {t}a --describe
"""

GROUPS = """
--list
--list --state
--list --state Empty
--list --state --type
--describe --group {g}
--describe --group {g} --members
--describe --group {g} --members --verbose
--describe --group {g} --state
--describe --group {g} --state --members
--describe --group nope
--describe --group nope --state
--describe
--reset-offsets --group {g} --topic t --to-earliest --dry-run
--reset-offsets --group {g} --topic t --to-offset 3 --dry-run
--reset-offsets --group {g} --topic t:0,1 --to-latest
--reset-offsets --group {g} --all-topics --shift-by -2 --dry-run
--reset-offsets --group {g} --all-topics --to-current --dry-run
--reset-offsets --group {g} --all-topics --to-datetime 2020-01-01T00:00:00.000 --dry-run
--reset-offsets --group {g} --topic t --to-earliest --to-latest
--reset-offsets --group {g} --topic t --dry-run
--reset-offsets --group {g} --to-earliest --dry-run
--reset-offsets --group {g} --topic t:1 --to-offset 2 --execute
--describe --group {g} --offsets
--delete-offsets --group {g} --topic t:1
--delete-offsets --group {g} --topic nope
--delete-offsets --group {g}
--describe --group {g}
--delete --group {g} --topic t
--delete --group {g}
--delete --group {g}
--delete
--list
"""


@pytest.fixture(scope="module")
def tools() -> Iterator[KafkaTools]:
    need("java")
    with KafkaTools() as running:
        yield running


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator["_Running"]:
    with _Running(tmp_path_factory) as subjects:
        yield subjects


class _Running:
    """The brokers, started when the first test asks for them."""

    def __init__(self, directories: pytest.TempPathFactory) -> None:
        self._directories = directories
        self._started: dict[str, tuple[Iterator[Subject], Subject]] = {}

    def __enter__(self) -> "_Running":
        return self

    def __exit__(self, *_: object) -> None:
        for generator, _subject in self._started.values():
            next(generator, None)

    def bootstrap(self, name: str) -> str:
        if name not in self._started:
            generator = iter(running_subject(name, self._directories.mktemp(name)))
            self._started[name] = (generator, next(generator))
        return f"127.0.0.1:{self._started[name][1].port}"


def _compare(
    tools: KafkaTools,
    bootstrap: str,
    tool: str,
    lines: str,
    *,
    by_words: bool = False,
    **names: str,
) -> None:
    """Run each line with both; all differences at once."""
    differences: list[str] = []
    for line in lines.strip().splitlines():
        said: list[Said] = []
        for letter in "jo":
            given = {name: f"{letter}-{text}" for name, text in names.items()}
            words = ["--bootstrap-server", bootstrap, *shlex.split(line.format(**given))]
            run = tools.run(tool, words) if letter == "j" else run_ours(tool, words)
            said.append(_made_alike(run, letter, names))
        if by_words:
            said = [each._replace(out=" ".join(each.out.split())) for each in said]
        if said[0] != said[1]:
            differences.append(f"{tool} {line}\n  theirs {said[0]}\n  ours   {said[1]}")
    assert not differences, "\n".join(differences)


def _made_alike(said: Said, letter: str, names: dict[str, str]) -> Said:
    out, err = said.out, said.err
    for text in names.values():
        if not (f"j-{text}" in out and f"o-{text}" in out):
            out = out.replace(f"{letter}-{text}", text)
        err = err.replace(f"{letter}-{text}", text)
    out = re.sub(r"TopicId: \S{22}", "TopicId: ...", out)
    is_java_trace = "java.util.concurrent.ExecutionException" in err
    is_logged = re.compile(r"log4j:|\[.*\] WARN ")
    told = [line for line in err.splitlines() if line.strip() and not is_logged.match(line)]
    # An error is printed with a stack trace there, and without one here.
    out = re.sub(r"\n\tat .*|\n\t?\.\.\. \d+ more|\nCaused by: .*", "", out)
    return Said(said.exit_code, out.rstrip("\n"), "\n".join(told[: 2 if is_java_trace else 1]))


@behaviour("C1", "C2")
@pytest.mark.parametrize("subject", [OURS, KAFKA])
def test_topics_are_created_and_refused(tools: KafkaTools, running: _Running, subject: str):
    _compare(tools, running.bootstrap(subject), "kafka-topics", CREATE, t="c")


@pytest.mark.parametrize("subject", [OURS, KAFKA])
def test_topics_are_listed_and_described(tools: KafkaTools, running: _Running, subject: str):
    lines = "\n".join(CREATE.strip().splitlines()[:5])
    _compare(tools, running.bootstrap(subject), "kafka-topics", lines, t="l")
    _compare(tools, running.bootstrap(subject), "kafka-topics", LOOK, t="l")


@behaviour("M2")
@pytest.mark.parametrize("subject", [OURS, KAFKA])
def test_topics_grow_and_are_refused_to(tools: KafkaTools, running: _Running, subject: str):
    lines = CREATE.strip().splitlines()[0]
    _compare(tools, running.bootstrap(subject), "kafka-topics", lines + ALTER, t="m")


@behaviour("D1")
@pytest.mark.parametrize("subject", [OURS, KAFKA])
def test_topics_are_deleted_and_refused_to(tools: KafkaTools, running: _Running, subject: str):
    lines = "\n".join(CREATE.strip().splitlines()[:5])
    _compare(tools, running.bootstrap(subject), "kafka-topics", lines + DELETE, t="d")


def test_what_is_no_command_line_is_refused(tools: KafkaTools, running: _Running):
    _compare(tools, running.bootstrap(OURS), "kafka-topics", MISUSE, t="u")


@pytest.mark.parametrize("subject", [OURS, KAFKA])
def test_settings_are_described_and_refused(tools: KafkaTools, running: _Running, subject: str):
    lines = CREATE.strip().splitlines()[0]
    _compare(tools, running.bootstrap(subject), "kafka-topics", lines, t="s")
    _compare(tools, running.bootstrap(subject), "kafka-configs", CONFIGS, t="s")


@behaviour("M1")
@pytest.mark.parametrize("subject", [OURS, KAFKA])
def test_settings_are_altered(tools: KafkaTools, running: _Running, subject: str):
    lines = CREATE.strip().splitlines()[0]
    _compare(tools, running.bootstrap(subject), "kafka-topics", lines, t="e")
    _compare(tools, running.bootstrap(subject), "kafka-configs", ALTER_CONFIGS, t="e")


@pytest.mark.parametrize("subject", [OURS, KAFKA])
def test_groups_are_described_reset_and_deleted(tools: KafkaTools, running: _Running, subject: str):
    bootstrap = running.bootstrap(subject)
    _commit(bootstrap)
    # The tables of 3.9.2 lack the line breaks between some rows: the words are compared.
    _compare(tools, bootstrap, "kafka-consumer-groups", GROUPS, by_words=True, g="group")


def _commit(bootstrap: str) -> None:
    """Ten records in each of three partitions, and two groups that have read some of them."""
    with BlockingClient(parse_addresses(bootstrap)) as client:
        cluster = client.cluster
        client.run(create_topics(cluster, [NewTopic("t", 3, 1)]))
        records = [NewRecord(1_700_000_000_000 + at, b"x", partition=at % 3) for at in range(30)]
        client.run(Producer(cluster).send("t", records))
        for group in ("j-group", "o-group"):
            places = {TopicPartition("t", at): 5 + at for at in range(3)}
            verdicts = client.run(commit_offsets(cluster, group, places))
            assert all(verdict.is_ok for verdict in verdicts.values())
