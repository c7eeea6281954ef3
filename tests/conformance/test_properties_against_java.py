"""Property files are read as java.util.Properties reads them."""

import base64
import random
import subprocess

from barnabas.formats.properties import merge, read_properties
from barnabas.model.errors import DecodeError
from tests.conformance.test_config_against_kafka import SOURCE
from tests.tools import java_command, need

PIECES = (
    *("a", "key", "b.c", "=", ":", " ", "\t", "\f", "\n", "\r", "\r\n", "\\", "\\\\", "#", "!"),
    *("\\\n", "\\\r\n   ", "\\t", "\\n", "\\u0041", "\\u00e9", "\\u12", "\\uzzzz", "\\q", "\\="),
    *("value", "\xe9", "\\:", "\\ ", "= ", " : ", "\\#", "\\\r"),
)


def test_files_of_every_shape_give_what_java_gives():
    need("java")
    source = random.Random(3)
    texts = [
        "".join(source.choice(PIECES) for _ in range(source.randint(0, 14))) for _ in range(20000)
    ]
    finished = subprocess.run(
        java_command(SOURCE, "properties"),
        input="\n".join("=" + base64.b64encode(text.encode("latin-1")).decode() for text in texts),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    for text, theirs in zip(texts, finished.stdout.splitlines(), strict=True):
        try:
            settings = merge(read_properties(text.encode("latin-1"), "file"))
        except DecodeError:
            assert theirs == "malformed", text.encode()
            continue
        assert theirs != "malformed", text.encode()
        words = [base64.b64decode(word[1:]).decode() for word in theirs.split()]
        expected = dict(zip(words[::2], words[1::2], strict=True))
        # A backslash alone at the very end is an entry without a name to Java, and nothing to us.
        if text.rstrip("\r\n").endswith("\\"):
            expected.pop("", None)
            settings.pop("", None)
        assert {name: setting.text for name, setting in settings.items()} == expected, text.encode()
