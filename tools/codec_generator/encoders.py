"""The text of the encoders: one function per struct and shape."""

from barnabas.formats.codec.schema import Array, Field, Kind, Scalar, Struct
from codec_generator.classes import is_nullable, is_set_test
from codec_generator.layout import (
    ApiLayout,
    absent_fields,
    present_fields,
    snake_case,
    tagged_fields,
    version_text,
)

FIXED_WRITERS = {
    Kind.BOOL: "write_bool",
    Kind.INT8: "write_int8",
    Kind.INT16: "write_i16_be",
    Kind.INT32: "write_i32_be",
    Kind.INT64: "write_i64_be",
    Kind.UUID: "write_uuid",
}
ITEM_WRITERS = {
    Kind.INT32: "write_int32_items",
    Kind.INT64: "write_int64_items",
    Kind.UUID: "write_uuid_items",
}


def encoder_name(layout: ApiLayout, struct: Struct, version: int) -> str:
    """The function that writes a struct in a version."""
    first = layout.first_version(layout.encoder_groups(struct), version)
    if struct is layout.api.request:
        return f"encode_request_v{first}"
    if struct is layout.api.response:
        return f"encode_response_v{first}"
    return f"_encode_{snake_case(struct.name)}_v{first}"


def encoders_text(layout: ApiLayout, struct: Struct) -> str:
    """All encoders of a struct."""
    return "".join(_encoder_text(layout, struct, group) for group in layout.encoder_groups(struct))


def _encoder_text(layout: ApiLayout, struct: Struct, group: list[int]) -> str:
    version = group[0]
    versions = version_text(group)
    lines = [
        f"def {encoder_name(layout, struct, version)}(",
        f"    writer: BytesWriter, value: {struct.name}, cuts: list[Cut]",
        ") -> None:",
    ]
    body: list[str] = []
    for field in absent_fields(struct, version):
        body += [
            f"if {is_set_test(field)}:",
            f'    refuse_field("{struct.name}", "{field.name}", "{versions}")',
        ]
    for field in present_fields(struct, version):
        body += _field_lines(layout, struct, field, version, versions, "writer")
    if layout.api.is_flexible_in(version):
        body += _tags_lines(layout, struct, version, versions)
    lines += [f"    {line}" for line in body or ["pass"]]
    return "\n".join([*lines, "", "", ""])


def _tags_lines(layout: ApiLayout, struct: Struct, version: int, versions: str) -> list[str]:
    fields = tagged_fields(struct, version)
    if not fields:
        return ["writer.append(0)"]
    lines = ["tags: i64 = 0"]
    for field in fields:
        lines += [f"if {is_set_test(field)}:", "    tags += 1"]
    lines += ["write_uvarint(writer, tags)", "if tags > 0:"]
    for field in fields:
        lines += [f"    if {is_set_test(field)}:", "        content = BytesWriter()"]
        content = _field_lines(layout, struct, field, version, versions, "content")
        lines += [f"        {line}" for line in content]
        lines += [f"        write_tagged_field(writer, {field.tag}, content)"]
    return lines


def _field_lines(
    layout: ApiLayout, struct: Struct, field: Field, version: int, versions: str, writer: str
) -> list[str]:
    flexible = layout.api.is_flexible_in(version)
    compact = "compact_" if flexible else ""
    nullable = field.is_nullable_in(version)
    name = f"value.{field.name}"
    if isinstance(field.type, Struct):
        return [f"{encoder_name(layout, field.type, version)}({writer}, {name}, cuts)"]
    if isinstance(field.type, Scalar):
        kind = field.type.kind
        if kind in FIXED_WRITERS:
            return [f"{FIXED_WRITERS[kind]}({writer}, {name})"]
        if kind is Kind.RECORDS:
            return [f"write_{compact}nullable_records({writer}, {name}, cuts)"]
        if nullable:
            return [f"write_{compact}nullable_{kind.value}({writer}, {name})"]
        write = f"write_{compact}{kind.value}({writer}, {field.name})"
        if not is_nullable(field):
            return [f"write_{compact}{kind.value}({writer}, {name})"]
        return [*_not_none_lines(struct, field, versions), write]
    return _array_lines(layout, struct, field, version, versions, writer)


def _not_none_lines(struct: Struct, field: Field, versions: str) -> list[str]:
    return [
        f"{field.name} = value.{field.name}",
        f"if {field.name} is None:",
        f'    refuse_none("{struct.name}", "{field.name}", "{versions}")',
    ]


def _array_lines(
    layout: ApiLayout, struct: Struct, field: Field, version: int, versions: str, writer: str
) -> list[str]:
    assert isinstance(field.type, Array)
    flexible = layout.api.is_flexible_in(version)
    compact = "compact_" if flexible else ""
    element = field.type.element
    name = field.name
    items = [f"write_{compact}count({writer}, len({name}))"]
    if isinstance(element, Struct):
        function = encoder_name(layout, element, version)
        items += [f"for {name}_item in {name}:", f"    {function}({writer}, {name}_item, cuts)"]
    elif element.kind is Kind.STRING:
        items += [f"write_{compact}string_items({writer}, {name})"]
    else:
        items += [f"{ITEM_WRITERS[element.kind]}({writer}, {name})"]
    if field.is_nullable_in(version):
        return [
            f"{name} = value.{name}",
            f"if {name} is None:",
            f"    write_{compact}count({writer}, -1)",
            "else:",
            *(f"    {line}" for line in items),
        ]
    if is_nullable(field):
        return [*_not_none_lines(struct, field, versions), *items]
    return [f"{name} = value.{name}", *items]
