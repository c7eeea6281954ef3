"""Brokers that the tests of bad input share."""

from collections.abc import Iterator

import pytest

from tests.e2e.subjects import KAFKA, OURS, Subject, running_subject


@pytest.fixture(scope="session", params=[OURS, KAFKA])
def subject(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Subject]:
    """Our broker, and a real Kafka 3.9.2 that has to answer the same."""
    # What comes by the hundred is counted in the log unless somebody wants to see it all.
    directory = tmp_path_factory.mktemp(request.param)
    yield from running_subject(request.param, directory, ["--verbose"])


@pytest.fixture(scope="session")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subject]:
    """Our broker alone, for what is measured on the process."""
    yield from running_subject(OURS, tmp_path_factory.mktemp("measured"))
