"""The command lines printed in the tutorial on how topics are created, changed and deleted.

They run as printed, changed only where they must be: broken lines are joined, host, port and topic
are filled in. The brokers 0, 1 and 2 of some of them are not there yet, so these are refused.
"""

import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.behaviours import behaviour
from tests.e2e.broker_process import BrokerProcess
from tests.e2e.subjects import Subject
from tests.tools import ROOT

AUTOMATIC_REPLICATION = """
bin/kafka-topics.sh --create --bootstrap-server localhost:9092 --topic my-topic-name
 --replication-factor 3 --partitions 3
"""
BY_HAND = """
bin/kafka-topics.sh --create --bootstrap-server localhost:9092 --topic my-topic-name
 --replica-assignment 0:1:2,0:1:2,0:1:2
"""
GROW = """
bin/kafka-topics.sh --bootstrap-server broker_host:port --alter --topic my_topic_name
    --partitions 4
"""
GROW_BY_HAND = """
bin/kafka-topics.sh --bootstrap-server broker_host:port --alter  --topic my-topic-name
   --replica-assignment 0:1:2,0:1:2,0:1:2,2:1:0  --partitions 4
"""
DELETE = """
bin/kafka-topics.sh --bootstrap-server broker_host:port --delete --topic my_topic_name
"""
ADD_CONFIG = """
bin/kafka-configs.sh --bootstrap-server broker_host:port --entity-type topics
 --entity-name my_topic_name --alter --add-config x=y
"""
DELETE_CONFIG = """
bin/kafka-configs.sh --bootstrap-server broker_host:port --entity-type topics
 --entity-name my_topic_name --alter --delete-config x
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with BrokerProcess(tmp_path_factory.mktemp("seed")) as running:
        yield running.bootstrap


def _run(bootstrap: str, printed: str, topic: str, **instead: str) -> tuple[int, str]:
    """Exit code, and what was said on both streams."""
    line = " ".join(printed.split())
    for placeholder in ("broker_host:port", "localhost:9092"):
        line = line.replace(placeholder, bootstrap)
    for placeholder in ("my_topic_name", "my-topic-name"):
        line = line.replace(placeholder, topic)
    for old, new in instead.items():
        line = line.replace(old, new)
    run = subprocess.run(shlex.split(line), cwd=ROOT, capture_output=True, text=True, timeout=60)
    return run.returncode, run.stdout + run.stderr


ON_ONE_BROKER = {"factor 3": "factor 1", "0:1:2": "1", "2:1:0": "1"}


@behaviour("C1", "C2")
def test_a_topic_is_created(broker: str):
    code, said = _run(broker, AUTOMATIC_REPLICATION, "automatic")
    assert code == 1
    assert said.startswith("Error while executing topic command : ")
    assert _run(broker, AUTOMATIC_REPLICATION, "automatic", **ON_ONE_BROKER) == (
        0,
        "Created topic automatic.\n",
    )
    assert _run(broker, BY_HAND, "by-hand", **ON_ONE_BROKER) == (0, "Created topic by-hand.\n")


@behaviour("M2")
def test_a_topic_grows(broker: str):
    for topic, printed in (("grown", GROW), ("grown-by-hand", GROW_BY_HAND)):
        assert _run(broker, AUTOMATIC_REPLICATION, topic, **ON_ONE_BROKER)[0] == 0
        assert _run(broker, printed, topic, **ON_ONE_BROKER) == (0, "")
        assert "PartitionCount: 4" in _run(broker, DELETE, topic, **{"--delete": "--describe"})[1]


@behaviour("D1")
def test_a_topic_is_deleted(broker: str):
    assert _run(broker, AUTOMATIC_REPLICATION, "deleted", **ON_ONE_BROKER)[0] == 0
    assert _run(broker, DELETE, "deleted") == (0, "")
    assert _run(broker, DELETE, "deleted") == (
        1,
        "Error while executing topic command : "
        "Topic 'Optional[deleted]' does not exist as expected\n",
    )


@behaviour("M1")
def test_settings_are_added_and_deleted(subject: Subject):
    broker = f"127.0.0.1:{subject.port}"
    assert _run(broker, AUTOMATIC_REPLICATION, "set", **ON_ONE_BROKER)[0] == 0
    code, said = _run(broker, ADD_CONFIG, "set")
    assert code == 1
    assert "InvalidConfigurationException: Unknown topic config name: x" in said
    assert _run(broker, DELETE_CONFIG, "set") == (1, "Invalid config(s): x\n")
    done = (0, "Completed updating config for topic set.\n")
    assert _run(broker, ADD_CONFIG, "set", **{"x=y": "retention.ms=1000"}) == done
    assert _run(broker, DELETE_CONFIG, "set", **{"config x": "config retention.ms"}) == done


def test_every_script_has_its_wrapper():
    names = sorted(path.name for path in Path(ROOT, "bin").iterdir())
    assert names == ["kafka-configs.sh", "kafka-consumer-groups.sh", "kafka-topics.sh"]
