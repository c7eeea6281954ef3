"""The catalog: what it knows, how little it imports, and that its codecs are the generated ones."""

import subprocess
import sys

import pytest

from barnabas.formats.wire import catalog
from barnabas.formats.wire.api_keys import ApiKey
from barnabas.model.errors import DecodeError
from tests.schemas import api_versions, generated_module, schema_of
from tests.tools import ROOT


def test_every_key_has_a_row_that_says_what_its_schema_says() -> None:
    assert set(catalog.APIS) == set(ApiKey)
    for key, api in catalog.APIS.items():
        schema = schema_of(key)
        assert api.key is ApiKey(key)
        assert (api.name, api.key) == (schema.name, schema.key)
        assert range(api.min_version, api.max_version + 1) == range(
            schema.version_range.first, schema.version_range.last + 1
        )
        assert ApiKey(key).name == api.module.upper()


def test_every_version_has_its_four_functions() -> None:
    for key, version in api_versions():
        module = generated_module(key)
        for name, found in (
            ("encode_request", catalog.request_encoder(key, version)),
            ("decode_request", catalog.request_decoder(key, version)),
            ("encode_response", catalog.response_encoder(key, version)),
            ("decode_response", catalog.response_decoder(key, version)),
        ):
            assert found is getattr(module, f"{name}_v{version}")


@pytest.mark.parametrize(("key", "version"), [(17, 0), (-1, 0), (ApiKey.FETCH, 18), (0, -1)])
def test_what_is_not_there_cannot_be_read(key: int, version: int) -> None:
    with pytest.raises(DecodeError):
        catalog.request_decoder(key, version)


def test_importing_the_catalog_imports_no_codec_of_an_api() -> None:
    program = (
        "import sys, barnabas.formats.wire.catalog as catalog\n"
        "print(*sorted(name for name in sys.modules if '.wire.generated.' in name))\n"
        "catalog.request_decoder(18, 3)\n"
        "print(*sorted(name for name in sys.modules if '.wire.generated.' in name))\n"
        "print(*sorted(name for name in sys.modules if '.wire.apis' in name or '.schema' in name))"
    )
    told = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT / "src",
        timeout=60,
    )
    prefix = "barnabas.formats.wire.generated."
    first, second, schemas = told.stdout.split("\n")[:3]
    assert first.split() == [prefix + "rows"]
    assert second.split() == [prefix + "api_versions", prefix + "rows"]
    assert schemas == ""
