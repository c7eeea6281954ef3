"""The generator: its modules say what the schemas say now, and versions share what they can."""

import sys

import pytest

from barnabas.formats.codec.schema import INT16, STRING, Api, Array, Field, Struct
from tests.schemas import schema_of
from tests.tools import ROOT

sys.path.insert(0, str(ROOT / "tools"))

from codec_generator.layout import ApiLayout, snake_case, version_text
from generate_codec import TARGET, module_texts


def test_the_generated_modules_are_those_of_the_schemas() -> None:
    texts = module_texts()
    assert {path.name for path in TARGET.glob("*.py")} == set(texts)
    stale = [name for name, text in texts.items() if (TARGET / name).read_text() != text]
    assert stale == []


def test_versions_of_one_layout_share_their_functions() -> None:
    layout = ApiLayout(schema_of(1))
    fetch_topic = next(struct for struct in layout.structs if struct.name == "FetchTopic")
    assert layout.decoder_groups(fetch_topic) == [
        [0, 1, 2, 3, 4],
        [5, 6, 7, 8],
        [9, 10, 11],
        [12],
        [13, 14, 15, 16],
        [17],
    ]


def test_versions_that_refuse_different_fields_have_encoders_of_their_own() -> None:
    item = Struct("Item", Field("name", STRING), Field("size", INT16, "2+"))
    request = Struct("TryRequest", Field("items", Array(item)), Field("late", INT16, "1+"))
    response = Struct("TryResponse", Field("error_code", INT16))
    layout = ApiLayout(Api(999, "Try", "0-2", "none", request, response))
    assert layout.encoder_groups(request) == [[0], [1], [2]]
    assert layout.encoder_groups(item) == [[0, 1], [2]]
    assert layout.encoder_groups(response) == [[0, 1, 2]]


def test_an_element_without_bytes_is_refused() -> None:
    empty = Struct("Nothing", Field("late", INT16, "1+"))
    request = Struct("TryRequest", Field("items", Array(empty)))
    layout = ApiLayout(Api(999, "Try", "0-1", "none", request, Struct("TryResponse")))
    with pytest.raises(ValueError, match="no bytes"):
        layout.decoder_groups(request)


@pytest.mark.parametrize(
    ("camel", "snake"),
    [
        ("FetchTopic", "fetch_topic"),
        ("isKRaftController", "is_k_raft_controller"),
        ("LeaderIdAndEpoch", "leader_id_and_epoch"),
    ],
)
def test_names_in_snake_case(camel: str, snake: str) -> None:
    assert snake_case(camel) == snake


def test_versions_as_text() -> None:
    assert version_text([0, 1, 2, 5, 7, 8]) == "0-2, 5, 7-8"
