#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads a pprof profile (profile.proto, gzipped) with nothing but the wire format, and checks it.

  read_pprof.py FILE          one JSON object: types, totals, folded stacks, mappings, ...

Anything that is not as profile.proto says ends with a sentence and status 1: string 0 is empty, ids
are unique and not zero, every reference resolves, every sample has one value for each type,
addresses lie in their mapping, mappings do not overlap and say that all names are here, the message is used
up to its last byte.
"""
import collections
import gzip
import json
import sys

from protobuf_wire import expect, message

SCHEMA = {
    "Profile": {1: ("sample_type", "ValueType*"), 2: ("sample", "Sample*"), 3: ("mapping", "Mapping*"),
                4: ("location", "Location*"), 5: ("function", "Function*"), 6: ("string_table", "bytes*"),
                7: ("drop_frames", "int"), 8: ("keep_frames", "int"), 9: ("time_nanos", "int"),
                10: ("duration_nanos", "int"), 11: ("period_type", "ValueType"), 12: ("period", "int"),
                13: ("comment", "int*"), 14: ("default_sample_type", "int")},
    "ValueType": {1: ("type", "int"), 2: ("unit", "int")},
    "Sample": {1: ("location_id", "int*"), 2: ("value", "int*"), 3: ("label", "Label*")},
    "Label": {1: ("key", "int"), 2: ("str", "int"), 3: ("num", "int"), 4: ("num_unit", "int")},
    "Mapping": {1: ("id", "int"), 2: ("memory_start", "int"), 3: ("memory_limit", "int"),
                4: ("file_offset", "int"), 5: ("filename", "int"), 6: ("build_id", "int"),
                7: ("has_functions", "int"), 8: ("has_filenames", "int"), 9: ("has_line_numbers", "int"),
                10: ("has_inline_frames", "int")},
    "Location": {1: ("id", "int"), 2: ("mapping_id", "int"), 3: ("address", "int"), 4: ("line", "Line*"),
                 5: ("is_folded", "int")},
    "Line": {1: ("function_id", "int"), 2: ("line", "int")},
    "Function": {1: ("id", "int"), 2: ("name", "int"), 3: ("system_name", "int"), 4: ("filename", "int"),
                 5: ("start_line", "int")},
}


def by_id(what, items):
    table = {}
    for item in items:
        expect(item["id"] != 0, f"a {what} has id 0")
        expect(item["id"] not in table, f"two {what}s have id {item['id']}")
        table[item["id"]] = item
    return table


def main():
    profile = message(SCHEMA, "Profile", gzip.open(sys.argv[1]).read())
    strings = [s.decode("utf-8", "replace") for s in profile["string_table"]]
    expect(strings and strings[0] == "", "string 0 is not empty")
    expect(len(set(strings)) == len(strings), "a string is there twice")

    def text(index):
        expect(index < len(strings), f"string {index} is not there")
        return strings[index]

    mappings = by_id("mapping", profile["mapping"])
    functions = by_id("function", profile["function"])
    locations = by_id("location", profile["location"])
    for f in functions.values():
        expect(text(f["name"]) != "", f"function {f['id']} has no name")
        text(f["system_name"]), text(f["filename"])
    for m in mappings.values():
        text(m["build_id"])
        expect(m["memory_start"] < m["memory_limit"], f"mapping {m['id']} is empty")
        expect(all(m[has] for has in ("has_functions", "has_filenames", "has_line_numbers", "has_inline_frames")),
               f"mapping {m['id']} leaves names to others")
    by_address = sorted(mappings.values(), key=lambda m: m["memory_start"])
    for a, b in zip(by_address, by_address[1:]):
        expect(a["memory_limit"] <= b["memory_start"], f"mappings {a['id']} and {b['id']} overlap")
    for loc in locations.values():
        expect(loc["line"], f"location {loc['id']} has no line")
        for line in loc["line"]:
            expect(line["function_id"] in functions, f"location {loc['id']} names no function")
        if loc["mapping_id"]:
            expect(loc["mapping_id"] in mappings, f"location {loc['id']} names no mapping")
            m = mappings[loc["mapping_id"]]
            expect(m["memory_start"] <= loc["address"] < m["memory_limit"],
                   f"address {loc['address']:#x} is outside of its mapping")
    types = [(text(t["type"]), text(t["unit"])) for t in profile["sample_type"]]
    expect(types and all(t and u for t, u in types), "a sample type has no name or unit")
    expect(len(set(types)) == len(types), "a sample type is there twice")
    folded = collections.Counter()
    threads = collections.Counter()
    totals = [0] * len(types)
    used_locations = set()
    for s in profile["sample"]:
        expect(len(s["value"]) == len(types), "a sample has another number of values than types")
        names = []
        for id_ in s["location_id"]:
            expect(id_ in locations, f"a sample names no location: {id_}")
            used_locations.add(id_)
            names += [text(functions[line["function_id"]]["name"]) for line in locations[id_]["line"]]
        labels = {}
        for label in s["label"]:
            key = text(label["key"])
            expect(key and key not in labels, f"a label has no key, or one twice: '{key}'")
            labels[key] = text(label["str"]) or label["num"]
        totals = [a + b for a, b in zip(totals, s["value"])]
        folded[";".join(reversed(names))] += s["value"][0]
        threads[str(labels.get("thread"))] += s["value"][0]
    period = profile["period_type"]
    print(json.dumps({
        "types": types, "totals": totals, "samples": len(profile["sample"]), "folded": folded,
        "threads": threads,
        "mappings": [{"file": text(m["filename"]), "build_id": text(m["build_id"]), "start": m["memory_start"],
                      "offset": m["file_offset"]} for m in profile["mapping"]],
        # What a reader of the file would look up: function name -> addresses in the file.
        "file_addresses": {text(functions[loc["line"][-1]["function_id"]]["name"]):
                           [mappings[loc["mapping_id"]]["id"],
                            loc["address"] - mappings[loc["mapping_id"]]["memory_start"]
                            + mappings[loc["mapping_id"]]["file_offset"]]
                           for loc in locations.values() if loc["mapping_id"]},
        "locations": len(locations), "locations_used": len(used_locations), "functions": len(functions),
        "files": sorted({text(f["filename"]) for f in functions.values()} - {""}),
        "time": profile["time_nanos"], "duration": profile["duration_nanos"], "period": profile["period"],
        "period_type": [text(period["type"]), text(period["unit"])] if period else None,
        "default": text(profile["default_sample_type"]),
    }))


main()
