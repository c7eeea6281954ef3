"""kill -9 at any point: every answered change of metadata is there, and no half of one."""

import os
import random
import subprocess
import sys
from pathlib import Path

from barnabas.node.embedded_store import FILE_NAME
from barnabas.node.sqlite_journal import SqliteJournal
from barnabas.zookeeper.journal import Image
from tests.tools import ROOT
from tests.worlds.metadata_history import History, random_operations

LIVES = 12
WRITER = ROOT / "tests" / "e2e" / "metadata_writer.py"


def test_a_killed_process_leaves_a_prefix_that_holds_every_answer(tmp_path: Path) -> None:
    draw = random.Random(1)
    image = Image()
    answered_in_all = 0
    for life in range(LIVES):
        answers = _answers_until_killed(tmp_path, seed=life, lines=draw.choice([0, 1, 5, 40, 200]))
        history = History(image, random.Random(life))
        history.begin()
        operations = random.Random(life)
        newest_answered = image.last_zxid
        for ticket in range(1, len(answers) + 100):
            history.apply(random_operations(operations))
            if ticket in answers:
                assert answers[ticket] == history.was_applied, ticket
                newest_answered = history.machine.last_zxid
        image = _reopened(tmp_path)
        assert image.last_zxid >= newest_answered
        assert image == history.images[image.last_zxid]
        assert list(answers) == list(range(1, len(answers) + 1))
        answered_in_all += len(answers)
    assert answered_in_all > 200


def _answers_until_killed(directory: Path, seed: int, lines: int) -> dict[int, bool]:
    """Whether each answered request was done, by ticket."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
    writer = subprocess.Popen(
        [sys.executable, str(WRITER), str(directory), str(seed)],
        stdout=subprocess.PIPE,
        env=environment,
    )
    assert writer.stdout is not None
    try:
        said = [writer.stdout.readline() for _ in range(lines)]
    finally:
        writer.kill()
    said += writer.stdout.readlines()
    writer.wait()
    whole = [line.split() for line in said if line.endswith(b"\n")]
    return {int(ticket): done == b"1" for ticket, done in whole}


def _reopened(directory: Path) -> Image:
    journal, image = SqliteJournal.open(directory / FILE_NAME)
    journal.close()
    return image
