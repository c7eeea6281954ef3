"""Writes src/barnabas/formats/wire/generated: one plain module per API, from its schema.

    .venv/bin/python tools/generate_codec.py

Each module holds the classes of an API and, per version, one function that encodes and one that
decodes its request and its response; versions with the same layout share a function. Files whose
text is already right are left alone, so that nothing is compiled again without a reason. When no
schema and nothing of the generator changed since the last run, it only compares their hash.
"""

import hashlib
import importlib
import pkgutil
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tools")]

APIS = ROOT / "src/barnabas/formats/wire/apis"
TARGET = ROOT / "src/barnabas/formats/wire/generated"
STAMP = TARGET / ".stamp"
INPUTS = (
    APIS,
    ROOT / "tools/codec_generator",
    ROOT / "tools/generate_codec.py",
    ROOT / "src/barnabas/formats/codec/schema.py",
)
IMPORTS = {
    "librt.strings": (
        "BytesWriter read_i16_be read_i32_be read_i64_be write_i16_be write_i32_be write_i64_be"
    ),
    "barnabas.formats.codec.decoding": (
        "check_unknown_tags no_items read_bytes read_compact_bytes read_compact_count"
        " read_compact_nullable_bytes read_compact_nullable_records read_compact_nullable_string"
        " read_compact_string read_compact_string_items read_count read_int8 read_int32_items"
        " read_int64_items read_nullable_bytes read_nullable_records read_nullable_string"
        " read_string read_string_items read_tag read_uuid read_uuid_items read_uvarint"
        " refuse_null refuse_short refuse_tagged_size refuse_trailing skip_tagged_fields"
        " allow_memory are_numbers_objects object_size take_memory take_numbers"
    ),
    "barnabas.formats.codec.encoding": (
        "EMPTY ZERO_UUID refuse_field refuse_none write_bool write_bytes write_compact_bytes"
        " write_compact_count write_compact_nullable_bytes write_compact_nullable_records"
        " write_compact_nullable_string write_compact_string write_compact_string_items"
        " write_count write_int8 write_int32_items write_int64_items write_nullable_bytes"
        " write_nullable_records write_nullable_string write_string write_string_items"
        " write_tagged_field write_uuid write_uuid_items write_uvarint"
    ),
}
TYPE_IMPORTS = {
    "mypy_extensions": "i16 i32 i64",
    "barnabas.formats.codec.records": "Cut Records",
}
MEANING_IMPORTS = {
    "barnabas.model.epochs": "BrokerEpoch ControllerEpoch LeaderEpoch PartitionEpoch",
    "barnabas.model.ids": "BrokerId ProducerId TopicId",
}


def main() -> int:
    """Generate what is missing or out of date; the exit code."""
    digest = inputs_digest()
    if STAMP.exists() and STAMP.read_text() == digest:
        return 0
    texts = module_texts()
    TARGET.mkdir(parents=True, exist_ok=True)
    written = 0
    for name, text in texts.items():
        path = TARGET / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            written += 1
    for path in sorted(TARGET.glob("*.py")):
        if path.name not in texts:
            path.unlink()
    STAMP.write_text(digest)
    print(f"codec: {len(texts)} modules, {written} written")
    return 0


def inputs_digest() -> str:
    """The hash of everything that decides what is written."""
    digest = hashlib.sha256(sys.version.encode())
    for root in INPUTS:
        for path in sorted(root.glob("*.py")) if root.is_dir() else [root]:
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def load_apis():
    """The schemas by API key."""
    apis = []
    for info in pkgutil.iter_modules([str(APIS)]):
        module = importlib.import_module(f"barnabas.formats.wire.apis.{info.name}")
        apis.append((info.name, module.API))
    return sorted(apis, key=lambda pair: pair[1].key)


def module_texts() -> dict[str, str]:
    """The text of every generated file by its name."""
    apis = load_apis()
    texts = {f"{name}.py": module_text(name, api) for name, api in apis}
    texts["__init__.py"] = (
        '"""Codecs written by tools/generate_codec.py: one module per API; not in git."""\n'
    )
    rows = ['"""Every API of the catalog: key, name, module, versions, first flexible one."""', ""]
    rows += ["ROWS: tuple[tuple[int, str, str, int, int, int], ...] = ("]
    for name, api in apis:
        versions = api.version_range
        flexible = next((v for v in versions if api.is_flexible_in(v)), versions.last + 1)
        row = (api.key, api.name, name, versions.first, versions.last, flexible)
        rows += [f"    {row},"]
    texts["rows.py"] = "\n".join([*rows, ")", ""])
    return texts


def module_text(name: str, api) -> str:
    """One API: classes, encoders, decoders, and the names of versions that share them."""
    from codec_generator.classes import class_text, value_struct_text
    from codec_generator.decoders import decoders_text, sizes_text
    from codec_generator.encoders import encoders_text
    from codec_generator.layout import ApiLayout

    layout = ApiLayout(api)
    values = layout.value_structs()
    body = ""
    for struct in layout.structs:
        body += value_struct_text(struct) if struct.name in values else class_text(struct)
    body += sizes_text(layout)
    for struct in layout.structs:
        body += encoders_text(layout, struct)
        body += decoders_text(layout, struct)
    body += aliases_text(layout)
    return f"{head_text(name, layout, body)}\n\n{body.rstrip()}\n"


def aliases_text(layout) -> str:
    """`encode_request_v4 = encode_request_v3` for versions that share a layout."""
    lines: list[str] = []
    for side, struct in (("request", layout.api.request), ("response", layout.api.response)):
        for verb, groups in (
            ("encode", layout.encoder_groups(struct)),
            ("decode", layout.decoder_groups(struct)),
        ):
            for group in groups:
                lines += [f"{verb}_{side}_v{v} = {verb}_{side}_v{group[0]}" for v in group[1:]]
    return "\n".join(lines)


def head_text(name: str, layout, body: str) -> str:
    """Docstring and imports, of these only what the body uses."""
    words = set(re.findall(r"\w+", body))
    api = layout.api
    lines = [
        f'"""{api.name}, versions {api.versions}: written from formats/wire/apis/{name}.py.',
        "",
        'Do not edit; tools/generate_codec.py writes it anew."""',
        "# Numbers become what barnabas.model calls them here, without a call for each.",
        '# mypy: disable-error-code="arg-type,assignment"',
        "# pyright: reportArgumentType=false, reportAssignmentType=false",
        "",
        "from __future__ import annotations",
        "",
    ]
    typing = ["TYPE_CHECKING", *sorted({"Final", "NamedTuple"} & words)]
    lines += [f"from typing import {', '.join(typing)}", ""]
    for module, names in IMPORTS.items():
        lines += import_lines(module, words & set(names.split()), "")
    # The fields of a compiled NamedTuple need their types at run time.
    needed = layout.value_meanings()
    for module, names in MEANING_IMPORTS.items():
        lines += import_lines(module, needed & set(names.split()), "")
    lines += ["", "if TYPE_CHECKING:"]
    for module, names in {**TYPE_IMPORTS, **MEANING_IMPORTS}.items():
        lines += import_lines(module, (words - needed) & set(names.split()), "    ")
    return "\n".join(lines)


def import_lines(module: str, names: set[str], indent: str) -> list[str]:
    """One import statement, a name per line."""
    if not names:
        return []
    lines = [f"{indent}from {module} import ("]
    lines += [f"{indent}    {name}," for name in sorted(names)]
    return [*lines, f"{indent})"]


if __name__ == "__main__":
    sys.exit(main())
