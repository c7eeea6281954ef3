"""The text of the decoders: one function per struct and shape.

Neighbouring fields of fixed width are held against the end of the bytes together.
"""

from barnabas.formats.codec.schema import Array, Field, Kind, Scalar, Struct
from codec_generator.classes import default_text, field_type, is_nullable
from codec_generator.layout import (
    FIXED_SIZES,
    ApiLayout,
    element_size_min,
    fixed_size,
    present_fields,
    snake_case,
    tagged_fields,
)

FIXED_READERS = {
    Kind.BOOL: "data[{at}] != 0",
    Kind.INT8: "read_int8(data, {at})",
    Kind.INT16: "read_i16_be(data, {at})",
    Kind.INT32: "read_i32_be(data, {at})",
    Kind.INT64: "read_i64_be(data, {at})",
    Kind.UUID: "read_uuid(data, {at})",
}
ITEM_READERS = {
    Kind.INT32: "read_int32_items",
    Kind.INT64: "read_int64_items",
    Kind.UUID: "read_uuid_items",
}
NUMBERS = (Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64)
NUMBERS_ARE_OBJECTS = "_NUMBERS_ARE_OBJECTS"
MEMORY = {Kind.UUID: 56, Kind.INT64: 32}
"""What a value takes beside its place in an object or list, where that does not depend on it."""
RECORDS_MEMORY = 120
"""A span, and the numbers of one that is interpreted."""
RESERVED = {"data", "position", "end", "count", "tag", "tags", "content_end", "unknown"}


def decoder_name(layout: ApiLayout, struct: Struct, version: int) -> str:
    """The function that reads a struct in a version and goes on behind it."""
    first = layout.first_version(layout.decoder_groups(struct), version)
    return f"_decode_{snake_case(struct.name)}_v{first}"


def decoders_text(layout: ApiLayout, struct: Struct) -> str:
    """All decoders of a struct, and for a message those that its callers use."""
    text = ""
    for group in layout.decoder_groups(struct):
        text += _decoder_text(layout, struct, group[0])
        if struct in (layout.api.request, layout.api.response):
            text += _message_text(layout, struct, group[0])
    return text


def _message_text(layout: ApiLayout, struct: Struct, version: int) -> str:
    """Bytes behind a request are left, as Kafka leaves them.

    librdkafka counts on it: its Metadata requests for no topic carry four bytes where one belongs.
    """
    decoder = decoder_name(layout, struct, version)
    if struct is layout.api.request:
        side = "request"
        lines = [f"    value, _ = {decoder}(data, start, limit)"]
    else:
        side = "response"
        lines = [
            f"    value, position = {decoder}(data, start, limit)",
            "    if position != limit:",
            f'        refuse_trailing("{struct.name}", position, limit)',
        ]
    return "\n".join(
        [
            f"def decode_{side}_v{version}(data: bytes, start: int, end: int) -> {struct.name}:",
            "    limit: i64 = end",
            "    allow_memory(limit - start)",
            *lines,
            "    return value",
            "",
            "",
            "",
        ]
    )


def _decoder_text(layout: ApiLayout, struct: Struct, version: int) -> str:
    lines = [
        f"def {decoder_name(layout, struct, version)}(",
        "    data: bytes, position: i64, end: i64",
        f") -> tuple[{struct.name}, i64]:",
    ]
    fields = present_fields(struct, version)
    body: list[str] = []
    index = 0
    while index < len(fields):
        run = _fixed_run(fields, index)
        if run:
            body += _run_lines(struct, run)
            index += len(run)
        else:
            body += _field_lines(layout, struct, fields[index], version, "end")
            index += 1
    tagged = tagged_fields(struct, version)
    if tagged:
        body += _tags_lines(layout, struct, tagged, version)
    elif layout.api.is_flexible_in(version):
        body += ["position = skip_tagged_fields(data, position, end)"]
    body += [f"return {struct.name}("]
    body += [f"    {field.name}={_local(field)}," for field in [*fields, *tagged]]
    body += [
        f"    {field.name}=no_items(),"
        for field in struct.fields
        if not field.is_in(version) and default_text(field) == "EMPTY"
    ]
    body += ["), position"]
    lines += [f"    {line}" for line in body]
    return "\n".join([*lines, "", "", ""])


def _local(field: Field) -> str:
    return f"{field.name}_" if field.name in RESERVED else field.name


def _fixed_run(fields: list[Field], index: int) -> list[Field]:
    run: list[Field] = []
    while index < len(fields) and fixed_size(fields[index]) is not None:
        run.append(fields[index])
        index += 1
    return run


def _run_lines(struct: Struct, run: list[Field]) -> list[str]:
    lines: list[str] = []
    offset = 0
    for field in run:
        assert isinstance(field.type, Scalar)
        at = f"position + {offset}" if offset else "position"
        lines.append(f"{_local(field)} = {FIXED_READERS[field.type.kind].format(at=at)}")
        offset += FIXED_SIZES[field.type.kind]
    check = [f"if end - position < {offset}:", f'    refuse_short("{struct.name}", position, end)']
    return [*check, *lines, f"position += {offset}", *_number_lines(run)]


def _number_lines(fields: list[Field]) -> list[str]:
    """Compiled objects hold their numbers, others refer to them."""
    numbers = [
        _local(field)
        for field in fields
        if isinstance(field.type, Scalar) and field.type.kind in NUMBERS
    ]
    if not numbers:
        return []
    return [f"if {NUMBERS_ARE_OBJECTS}:", f"    take_numbers({', '.join(numbers)})"]


def _field_lines(
    layout: ApiLayout, struct: Struct, field: Field, version: int, end: str
) -> list[str]:
    """One field of variable width, or any field with a tag; `end` is where it must end by."""
    flexible = layout.api.is_flexible_in(version)
    compact = "compact_" if flexible else ""
    name = _local(field)
    if isinstance(field.type, Struct):
        function = decoder_name(layout, field.type, version)
        return [
            f"take_memory({size_constant(field.type)})",
            f"{name}, position = {function}(data, position, {end})",
        ]
    if isinstance(field.type, Array):
        return _array_lines(layout, struct, field, version, end)
    kind = field.type.kind
    if kind in FIXED_READERS:
        size = FIXED_SIZES[kind]
        return [
            f"if {end} - position < {size}:",
            f'    refuse_short("{struct.name}.{field.name}", position, {end})',
            f"{name} = {FIXED_READERS[kind].format(at='position')}",
            f"position += {size}",
            *_number_lines([field]),
            *([f"take_memory({MEMORY[kind]})"] if kind is Kind.UUID else []),
        ]
    nullable = "nullable_" if field.is_nullable_in(version) or kind is Kind.RECORDS else ""
    return [f"{name}, position = read_{compact}{nullable}{kind.value}(data, position, {end})"]


def _array_lines(
    layout: ApiLayout, struct: Struct, field: Field, version: int, end: str
) -> list[str]:
    assert isinstance(field.type, Array)
    flexible = layout.api.is_flexible_in(version)
    compact = "compact_" if flexible else ""
    element = field.type.element
    size = element_size_min(element, version, flexible)
    name = _local(field)
    memory = _element_memory(element, version)
    lines = [f"count, position = read_{compact}count(data, position, {end}, {size}, {memory})"]
    items: list[str] = []
    if isinstance(element, Struct):
        items += [
            f"{name} = [] if count > 0 else no_items()",
            "for _ in range(count):",
            f"    {name}_item, position = {decoder_name(layout, element, version)}(",
            f"        data, position, {end}",
            "    )",
            f"    {name}.append({name}_item)",
        ]
    elif element.kind is Kind.STRING:
        function = f"read_{compact}string_items"
        items += [f"{name}, position = {function}(data, position, {end}, count)"]
    else:
        items += [f"{name}, position = {ITEM_READERS[element.kind]}(data, position, count)"]
    declared = [] if field.tag is not None else [f"{name}: {field_type(field)}"]
    if field.is_nullable_in(version):
        lines += [*declared, "if count < 0:", f"    {name} = None", "else:"]
        return lines + [f"    {line}" for line in items]
    lines += ["if count < 0:", f'    refuse_null("{struct.name}.{field.name}")']
    return [*lines, *declared, *items]


def size_constant(struct: Struct) -> str:
    """The name of what an object of a struct takes."""
    return f"_{snake_case(struct.name).upper()}_SIZE"


def sizes_text(layout: ApiLayout) -> str:
    """Those constants; they depend on whether the module is compiled."""
    messages = (layout.api.request, layout.api.response)
    lines = [
        f"{size_constant(struct)}: Final = object_size({struct.name})"
        for struct in layout.structs
        if struct not in messages
    ]
    message = layout.api.request.name
    lines += [f"{NUMBERS_ARE_OBJECTS}: Final = are_numbers_objects({message}.__repr__)"]
    return "\n".join([*lines, "", "", ""])


def _element_memory(element: Scalar | Struct, version: int) -> str:
    """What one element of an array takes apart from its strings and arrays, as an expression."""
    if isinstance(element, Scalar):
        return str(MEMORY.get(element.kind, 0))
    memory = 0
    for field in present_fields(element, version):
        if isinstance(field.type, Scalar):
            if field.type.kind is Kind.UUID:
                memory += MEMORY[Kind.UUID]
            elif field.type.kind is Kind.RECORDS:
                memory += RECORDS_MEMORY
    return f"{size_constant(element)} + {memory}" if memory else size_constant(element)


def _tags_lines(layout: ApiLayout, struct: Struct, tagged: list[Field], version: int) -> list[str]:
    lines: list[str] = []
    for field in tagged:
        default = "no_items()" if isinstance(field.type, Array) else default_text(field)
        if isinstance(field.type, Array) and is_nullable(field) and field.default is None:
            default = "None"
        lines.append(f"{_local(field)}: {field_type(field)} = {default}")
    lines += [
        "tags, position = read_uvarint(data, position, end)",
        "if tags > 0:",
        "    unknown: i64 = 0",
        "    unknown_size: i64 = 0",
        "    for _tag in range(tags):",
        "        tag, position, content_end = read_tag(data, position, end)",
    ]
    for index, field in enumerate(tagged):
        place = f'"{struct.name}.{field.name}"'
        content = [
            *_field_lines(layout, struct, field, version, "content_end"),
            "if position != content_end:",
            f"    refuse_tagged_size({place}, position, content_end)",
        ]
        lines += [f"        {'elif' if index else 'if'} tag == {field.tag}:"]
        lines += [f"            {line}" for line in content]
    lines += [
        "        else:",
        "            unknown += 1",
        "            unknown_size += content_end - position",
        "            check_unknown_tags(unknown, unknown_size)",
        "            position = content_end",
    ]
    return lines
