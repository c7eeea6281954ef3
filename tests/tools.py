"""What tests need from outside the project: found, fetched into .cache, or skipped with a reason.

With BARNABAS_REQUIRE=all in the environment a missing tool fails the test instead.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, NoReturn

import pytest

ROOT = Path(__file__).parent.parent
ORACLES = ROOT / ".cache" / "oracles"
"""Programs to compare with; nothing of theirs is ever committed."""

KAFKA_VERSION = "3.9.2"
KAFKA_JARS = ORACLES / f"kafka-{KAFKA_VERSION}"
KIO_050 = ORACLES / "kio-0.5.0"

_FETCH_SECONDS = 600
_COMPILE_SECONDS = 120


class MissingTool(Exception):
    """A tool is not there; the text says how to get it."""


class Tool(NamedTuple):
    """How to make sure of a tool, and what to tell somebody who has not got it."""

    ensure: Callable[[], None]
    install: str


def need(name: str) -> None:
    """Skip the calling test unless the tool is there; fail it when all tools are required."""
    tool = TOOLS[name]
    try:
        tool.ensure()
    except MissingTool as missing:
        go_without(f"{name} is missing ({missing}); to install: {tool.install}")


def go_without(reason: str) -> NoReturn:
    """Skip the calling test for what this machine has not; fail it when all is required."""
    if os.environ.get("BARNABAS_REQUIRE") == "all":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def kafka_class_path() -> str:
    """Kafka 3.9.2 with its tools and its ZooKeeper, for `java -cp`; after need("java")."""
    return os.pathsep.join(str(jar) for jar in sorted(KAFKA_JARS.glob("*.jar")))


def java_command(source: Path, *arguments: str) -> list[str]:
    """The command that runs a one-file Java program against Kafka's jars; after need("java").

    It is compiled once for each content of the file.
    """
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    classes = ORACLES / "classes" / f"{source.stem}-{digest}"
    with _exclusively(classes):
        if not classes.is_dir():
            building = classes.with_name(classes.name + ".building")
            shutil.rmtree(building, ignore_errors=True)
            _run(
                ["javac", "-nowarn", "-cp", kafka_class_path(), "-d", str(building), str(source)],
                _COMPILE_SECONDS,
            )
            building.rename(classes)
    class_path = os.pathsep.join([str(classes), kafka_class_path()])
    return ["java", "-XX:+UseSerialGC", "-Xshare:auto", "-cp", class_path, source.stem, *arguments]


def _ensure_program(*names: str) -> Callable[[], None]:
    def ensure() -> None:
        for name in names:
            if shutil.which(name) is None:
                raise MissingTool(f"no {name} in PATH")

    return ensure


def _ensure_java() -> None:
    _ensure_program("java", "javac")()
    with _exclusively(KAFKA_JARS):
        if any(KAFKA_JARS.glob("kafka-server-common-*.jar")):
            return
        _ensure_program("mvn")()
        project = KAFKA_JARS.with_name(KAFKA_JARS.name + ".project")
        fetched = KAFKA_JARS.with_name(KAFKA_JARS.name + ".fetching")
        project.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(fetched, ignore_errors=True)
        (project / "pom.xml").write_text(_kafka_pom())
        _run(
            [
                *("mvn", "-q", "-B", "-f", str(project / "pom.xml")),
                *("dependency:copy-dependencies", f"-DoutputDirectory={fetched}"),
            ],
            _FETCH_SECONDS,
        )
        fetched.rename(KAFKA_JARS)


def _kafka_pom() -> str:
    artifacts = ("kafka_2.13", "kafka-clients", "kafka-tools")
    dependencies = "".join(
        f"<dependency><groupId>org.apache.kafka</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{KAFKA_VERSION}</version></dependency>"
        for artifact in artifacts
    )
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>oracles</groupId>"
        f"<artifactId>kafka</artifactId><version>1</version><dependencies>{dependencies}"
        "</dependencies></project>"
    )


def _ensure_c_compiler() -> None:
    _ensure_program("cc")()
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():
        raise MissingTool("no Python.h")


def _ensure_kio_050() -> None:
    with _exclusively(KIO_050):
        if KIO_050.is_dir():
            return
        fetched = KIO_050.with_name(KIO_050.name + ".fetching")
        shutil.rmtree(fetched, ignore_errors=True)
        _run(
            [sys.executable, "-m", "pip", "install", "-q", "--target", str(fetched), "kio==0.5.0"],
            _FETCH_SECONDS,
        )
        fetched.rename(KIO_050)


@contextmanager
def _exclusively(target: Path) -> Iterator[None]:
    """Let one of several test processes prepare `target` while the others wait for it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target.with_name(target.name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(command: list[str], seconds: int) -> None:
    try:
        finished = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise MissingTool(f"{command[0]} took longer than {seconds} s") from None
    if finished.returncode != 0:
        told = (finished.stderr or finished.stdout).strip().splitlines()[-5:]
        raise MissingTool(f"{command[0]} failed: {' | '.join(told)}")


TOOLS = {
    "java": Tool(_ensure_java, "apt-get install default-jdk-headless maven"),
    "kcat": Tool(_ensure_program("kcat"), "apt-get install kcat"),
    "cc": Tool(_ensure_c_compiler, "apt-get install gcc libc6-dev python3-dev"),
    "kio050": Tool(_ensure_kio_050, "python -m pip install kio==0.5.0, by the test itself"),
    "git": Tool(_ensure_program("git"), "apt-get install git"),
    "strace": Tool(_ensure_program("strace"), "apt-get install strace"),
}
