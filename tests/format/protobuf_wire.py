# SPDX-License-Identifier: MIT
"""The wire format of protobuf, read strictly, for the readers beside this file.

A schema is {message: {number: (name, form)}}; a form is "int" (varint), "fixed64", "bytes" or the name of a
message, with a * behind it when the field is repeated (numbers are then packed or not). Whatever
does not fit ends the program with a sentence: unknown fields, other wire types, what is there twice, what
runs over the end.
"""
import os
import sys


def fail(sentence):
    print(f"{os.path.basename(sys.argv[0]).removesuffix('.py')}: {sentence}", file=sys.stderr)
    sys.exit(1)


def expect(condition, sentence):
    if not condition:
        fail(sentence)


def varint(data, at):
    value = shift = 0
    while True:
        expect(at < len(data), "a varint runs over the end")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            expect(value < 1 << 64, "a varint has more than 64 bits")
            return value, at
        expect(shift < 70, "a varint is too long")


def number(form, data, at):
    if form == "int":
        return varint(data, at)
    expect(at + 8 <= len(data), "a fixed64 runs over the end")
    return int.from_bytes(data[at:at + 8], "little"), at + 8


def message(schema, kind, data):
    fields = schema[kind]
    out = {}
    for name, form in fields.values():
        out[name] = [] if form.endswith("*") else 0 if form in ("int", "fixed64") else None
    at = 0
    seen = set()
    while at < len(data):
        tag, at = varint(data, at)
        field, wire = tag >> 3, tag & 7
        expect(field in fields, f"{kind} has an unknown field {field}")
        name, form = fields[field]
        repeated, form = form.endswith("*"), form.rstrip("*")
        is_number = form in ("int", "fixed64")
        if wire != 2:
            expect(is_number and wire == (0 if form == "int" else 1), f"{kind}.{name} has wire type {wire}")
            value, at = number(form, data, at)
            values = [value]
        else:
            n, at = varint(data, at)
            expect(n <= len(data) - at, f"{kind}.{name} runs over the end")
            part, at = data[at:at + n], at + n
            if is_number:
                expect(repeated, f"{kind}.{name} is packed but not repeated")
                values, i = [], 0
                while i < n:
                    value, i = number(form, part, i)
                    values.append(value)
            else:
                values = [part if form == "bytes" else message(schema, form, part)]
        if repeated:
            out[name].extend(values)
        else:
            expect(name not in seen, f"{kind}.{name} is there twice")
            out[name] = values[0]
        seen.add(name)
    return out


def utf8(data):
    try:
        return (data or b"").decode()
    except UnicodeDecodeError:
        fail(f"{data!r} is not UTF-8")
