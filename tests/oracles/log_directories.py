"""Kafka's own tools on a log directory: its log manager, and DumpLogSegments."""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.tools import java_command, kafka_class_path

SECONDS = 120
PROGRAM = Path(__file__).parent / "OpenLogDirectories.java"
HALTING_PROGRAM = Path(__file__).parent / "HaltedLogs.java"

LOG4J = """log4j.rootLogger=WARN, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=%p %m%n
"""


def open_with_kafka(
    work: Path, directories: Iterable[str], cluster_id: str, broker_id: int, settings: str
) -> list[str]:
    """Open, tell and cleanly stop the directories with Kafka 3.9.2: warnings and logs, by line."""
    command = java_command(PROGRAM, cluster_id, str(broker_id), settings, *directories)
    return _run(work, command)


def write_and_halt_with_kafka(work: Path, directory: str, batches: int) -> dict[str, int]:
    """Let Kafka 3.9.2 write logs and halt in the middle of it: the end of each log by its topic."""
    lines = _run(work, java_command(HALTING_PROGRAM, directory, str(batches)))
    return {line.split()[0]: int(line.split()[1]) for line in lines if len(line.split()) == 2}


def dump_with_kafka(work: Path, files: Iterable[str], *options: str) -> list[str]:
    """What DumpLogSegments prints about some files."""
    command = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", kafka_class_path()]
    command += ["kafka.tools.DumpLogSegments", "--files", ",".join(files), *options]
    return _run(work, command)


def _run(work: Path, command: list[str]) -> list[str]:
    settings = work / "log4j.properties"
    settings.write_text(LOG4J)
    command.insert(1, f"-Dlog4j.configuration=file:{settings}")
    finished = subprocess.run(
        command, capture_output=True, text=True, timeout=SECONDS, env={**os.environ, "LC_ALL": "C"}
    )
    assert finished.returncode == 0, finished.stdout[-2000:] + finished.stderr[-2000:]
    return finished.stdout.splitlines() + finished.stderr.splitlines()
