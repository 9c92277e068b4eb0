#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads OTLP profiles (v1development, opentelemetry-proto 1.10) with nothing but the wire format, and checks them.

  read_otlp.py FILE          one JSON object: for each type its sum, self and total by function

What is checked: row 0 of every table of the dictionary is there and empty; every index is within its table; no
two rows of a table are equal; a profile has one type with a name and a unit; every sample has one value, a stack and the
attributes thread.name, thread.id and process.pid; a location has lines, its functions names; an address has a
mapping; texts are UTF-8; every row of the dictionary is used; the file is used up to its last byte.
"""
import collections
import json
import sys

from protobuf_wire import expect, message, utf8

SCHEMA = {
    "ProfilesData": {1: ("resource_profiles", "ResourceProfiles*"), 2: ("dictionary", "Dictionary")},
    "ResourceProfiles": {1: ("resource", "Resource"), 2: ("scope_profiles", "ScopeProfiles*"), 3: ("schema_url", "bytes")},
    "Resource": {1: ("attributes", "KeyValue*")},
    "KeyValue": {1: ("key", "bytes"), 2: ("value", "AnyValue")},
    "AnyValue": {1: ("string_value", "bytes"), 3: ("int_value", "int")},
    "ScopeProfiles": {1: ("scope", "Scope"), 2: ("profiles", "Profile*"), 3: ("schema_url", "bytes")},
    "Scope": {1: ("name", "bytes"), 2: ("version", "bytes")},
    "Dictionary": {1: ("mapping_table", "Mapping*"), 2: ("location_table", "Location*"),
                   3: ("function_table", "Function*"), 4: ("link_table", "bytes*"), 5: ("string_table", "bytes*"),
                   6: ("attribute_table", "KeyValueAndUnit*"), 7: ("stack_table", "Stack*")},
    "Profile": {1: ("sample_type", "ValueType"), 2: ("samples", "Sample*"), 3: ("time_unix_nano", "fixed64"),
                4: ("duration_nano", "int"), 5: ("period_type", "ValueType"), 6: ("period", "int")},
    "ValueType": {1: ("type_strindex", "int"), 2: ("unit_strindex", "int")},
    "Sample": {1: ("stack_index", "int"), 2: ("attribute_indices", "int*"), 3: ("link_index", "int"),
               4: ("values", "int*"), 5: ("timestamps_unix_nano", "fixed64*")},
    "Mapping": {1: ("memory_start", "int"), 2: ("memory_limit", "int"), 3: ("file_offset", "int"),
                4: ("filename_strindex", "int"), 5: ("attribute_indices", "int*")},
    "Location": {1: ("mapping_index", "int"), 2: ("address", "int"), 3: ("lines", "Line*"),
                 4: ("attribute_indices", "int*")},
    "Line": {1: ("function_index", "int"), 2: ("line", "int"), 3: ("column", "int")},
    "Function": {1: ("name_strindex", "int"), 2: ("system_name_strindex", "int"), 3: ("filename_strindex", "int"),
                 4: ("start_line", "int")},
    "Stack": {1: ("location_indices", "int*")},
    "KeyValueAndUnit": {1: ("key_strindex", "int"), 2: ("value", "AnyValue"), 3: ("unit_strindex", "int")},
}


class Dictionary:
    def __init__(self, tables):
        self.tables = tables
        self.used = collections.defaultdict(set)
        tables["string_table"] = [utf8(s) for s in tables["string_table"]]
        for name, rows in tables.items():
            expect(rows, f"{name} has no row 0")
            expect(not rows[0] or not any(v for v in rows[0].values()), f"row 0 of {name} is not empty")
            keys = [json.dumps(row, default=repr) for row in rows]
            expect(len(set(keys)) == len(keys), f"two rows of {name} are equal")

    def get(self, table, index):
        expect(index < len(self.tables[table]), f"row {index} of {table} is not there")
        self.used[table].add(index)
        return self.tables[table][index]

    def text(self, index):
        return self.get("string_table", index)

    def attributes(self, indices):
        out = {}
        for index in indices:
            expect(index, "an attribute is none")
            row = self.get("attribute_table", index)
            key = self.text(row["key_strindex"])
            expect(key and key not in out, f"an attribute has no key, or it is there twice: {key}")
            text = row["value"]["string_value"]
            out[key] = row["value"]["int_value"] if text is None else utf8(text)
        return out

    def stack(self, index):
        """Names, innermost first."""
        names = []
        for location_index in self.get("stack_table", index)["location_indices"]:
            expect(location_index, "a stack has a location that is none")
            location = self.get("location_table", location_index)
            expect(location["lines"], f"location {location_index} has no line")
            expect(location["mapping_index"] or not location["address"], "an address has no mapping")
            expect("profile.frame.type" in self.attributes(location["attribute_indices"]), "a frame has no type")
            mapping = self.get("mapping_table", location["mapping_index"])
            self.text(mapping["filename_strindex"])
            self.attributes(mapping["attribute_indices"])
            for line in location["lines"]:
                function = self.get("function_table", line["function_index"])
                self.text(function["filename_strindex"]), self.text(function["system_name_strindex"])
                expect(line["function_index"] and self.text(function["name_strindex"]), "a function has no name")
                names.append(self.text(function["name_strindex"]))
        return names


def read_profile(profile, d):
    kind = profile["sample_type"]
    name, unit = d.text(kind["type_strindex"]), d.text(kind["unit_strindex"])
    expect(name and unit, "a type has no name or unit")
    if profile["period_type"]:
        d.text(profile["period_type"]["type_strindex"]), d.text(profile["period_type"]["unit_strindex"])
    self_, total, threads = collections.Counter(), collections.Counter(), collections.Counter()
    for sample in profile["samples"]:
        expect(len(sample["values"]) == 1, "a sample has not one value")
        value = sample["values"][0]
        attributes = d.attributes(sample["attribute_indices"])
        expect(set(attributes) == {"thread.name", "thread.id", "process.pid"}, f"a sample has attributes {attributes}")
        names = d.stack(sample["stack_index"])
        threads[attributes["thread.name"]] += value
        if names:
            self_[names[0]] += value
        for n in set(names):
            total[n] += value
    return name, {"unit": unit, "sum": sum(threads.values()), "self": self_, "total": total, "threads": threads}


def main():
    with open(sys.argv[1], "rb") as file:
        data = message(SCHEMA, "ProfilesData", file.read())
    d = Dictionary(data["dictionary"])
    d.text(0)
    out = {}
    expect(len(data["resource_profiles"]) == 1, "there is not one resource")
    for scope in data["resource_profiles"][0]["scope_profiles"]:
        expect(utf8(scope["schema_url"]).endswith("/profiles/v1development/1.10"), "the schema is of another version")
        for profile in scope["profiles"]:
            name, answer = read_profile(profile, d)
            expect(name not in out, f"two profiles are of type {name}")
            out[name] = answer
    for name, rows in d.tables.items():
        unused = set(range(1, len(rows))) - d.used[name]
        expect(not unused, f"nobody uses row {min(unused, default=0)} of {name}")
    json.dump(out, sys.stdout)


main()
