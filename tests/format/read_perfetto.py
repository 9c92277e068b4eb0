#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads a Perfetto trace as weir export makes it, with nothing but the wire format, and checks it.

  read_perfetto.py FILE          one JSON object: samples, self and total by function, slices, tracks

Field numbers are those of protos/perfetto/trace/ (trace_packet.proto, track_event/*.proto, interned_data.proto,
profiling/profile_common.proto, profiling/profile_packet.proto). What is checked, as trace_processor needs it:
 - every packet has the one sequence id; the first one clears the sequence's state, those that refer to interned
   data say that they need it, and no number of interned data is given twice or used before it is sent;
 - every event is on a track that was described before, whose parents were, too;
 - on each track slices nest: every end has its begin, none stays open, times do not go back;
 - stacks have frames, frames a name, and a mapping whenever they have an address;
 - texts are UTF-8, and the file is used up to its last byte.
"""
import collections
import json
import sys

from protobuf_wire import expect, message, utf8

SCHEMA = {
    "Trace": {1: ("packet", "TracePacket*")},
    "TracePacket": {8: ("timestamp", "int"), 10: ("sequence_id", "int"), 11: ("track_event", "TrackEvent"),
                    12: ("interned_data", "InternedData"), 13: ("sequence_flags", "int"),
                    59: ("defaults", "TracePacketDefaults"), 60: ("track_descriptor", "TrackDescriptor"),
                    66: ("perf_sample", "PerfSample")},
    "TracePacketDefaults": {12: ("perf_sample_defaults", "PerfSampleDefaults")},
    "PerfSampleDefaults": {1: ("timebase", "Timebase")},
    "Timebase": {2: ("frequency", "int"), 10: ("name", "bytes")},
    "TrackDescriptor": {1: ("uuid", "int"), 2: ("name", "bytes"), 3: ("process", "ProcessDescriptor"),
                        4: ("thread", "ThreadDescriptor"), 5: ("parent_uuid", "int")},
    "ProcessDescriptor": {1: ("pid", "int"), 6: ("process_name", "bytes")},
    "ThreadDescriptor": {1: ("pid", "int"), 2: ("tid", "int"), 5: ("thread_name", "bytes")},
    "TrackEvent": {9: ("type", "int"), 10: ("name_iid", "int"), 11: ("track_uuid", "int"), 23: ("name", "bytes")},
    "PerfSample": {1: ("cpu", "int"), 2: ("pid", "int"), 3: ("tid", "int"), 4: ("callstack_iid", "int"),
                   5: ("cpu_mode", "int")},
    "InternedData": {2: ("event_names", "Text*"), 5: ("function_names", "Text*"), 6: ("frames", "Frame*"),
                     7: ("callstacks", "Callstack*"), 16: ("build_ids", "Text*"), 17: ("mapping_paths", "Text*"),
                     18: ("source_paths", "Text*"), 19: ("mappings", "Mapping*")},
    "Text": {1: ("iid", "int"), 2: ("str", "bytes")},
    "Mapping": {1: ("iid", "int"), 2: ("build_id", "int"), 7: ("path_string_ids", "int*")},
    "Frame": {1: ("iid", "int"), 2: ("function_name_id", "int"), 3: ("mapping_id", "int"), 4: ("rel_pc", "int"),
              5: ("source_path_iid", "int"), 6: ("line_number", "int")},
    "Callstack": {1: ("iid", "int"), 2: ("frame_ids", "int*")},
}
CLEARED, NEEDS_STATE = 1, 2
BEGIN, END, INSTANT = 1, 2, 3


class Reader:
    def __init__(self):
        self.interned = collections.defaultdict(dict)
        self.tracks = {}
        self.open = collections.defaultdict(list)
        self.last = collections.defaultdict(int)
        self.self_, self.total, self.folded = collections.Counter(), collections.Counter(), collections.Counter()
        self.slices = collections.defaultdict(lambda: [0, 0])
        self.by_track = collections.Counter()
        self.instants = []
        self.samples = 0
        self.sampled_threads = collections.Counter()

    def get(self, table, iid):
        expect(iid in self.interned[table], f"{table} {iid} is used before it is sent")
        return self.interned[table][iid]

    def take_interned(self, data):
        for table, items in data.items():
            for item in items:
                expect(item["iid"] > 0, f"a row of {table} has no number")
                expect(item["iid"] not in self.interned[table], f"{table} {item['iid']} is sent twice")
                self.interned[table][item["iid"]] = utf8(item["str"]) if "str" in item else item
        for mapping in data["mappings"]:
            self.get("build_ids", mapping["build_id"])
            expect(mapping["path_string_ids"], "a mapping has no path")
            for part in mapping["path_string_ids"]:
                self.get("mapping_paths", part)
        for frame in data["frames"]:
            self.get("function_names", frame["function_name_id"])
            expect(frame["mapping_id"] or not frame["rel_pc"], "a frame has an address without a mapping")
            if frame["mapping_id"]:
                self.get("mappings", frame["mapping_id"])
            if frame["source_path_iid"]:
                self.get("source_paths", frame["source_path_iid"])
        for stack in data["callstacks"]:
            expect(stack["frame_ids"], "a stack has no frames")

    def take_track(self, track):
        uuid = track["uuid"]
        expect(uuid and uuid not in self.tracks, f"track {uuid} is described twice")
        expect(not track["parent_uuid"] or track["parent_uuid"] in self.tracks, f"track {uuid} has an unknown parent")
        if track["thread"]:
            expect(track["thread"]["tid"] and track["thread"]["pid"], "a thread has no numbers")
        names = [track["name"]] + [track[k][n] for k, n in (("process", "process_name"), ("thread", "thread_name"))
                                   if track[k]]
        self.tracks[uuid] = next(utf8(n) for n in names if n is not None)

    def take_sample(self, sample):
        self.samples += 1
        self.sampled_threads[sample["tid"]] += 1
        expect(sample["cpu_mode"] in (1, 2), "a sample has no mode")
        names = []
        if sample["callstack_iid"]:
            for frame in self.get("callstacks", sample["callstack_iid"])["frame_ids"]:
                names.append(self.get("function_names", self.get("frames", frame)["function_name_id"]))
        if names:
            self.self_[names[-1]] += 1
        for name in set(names):
            self.total[name] += 1
        self.folded[";".join(names)] += 1

    def take_event(self, event, time):
        track = event["track_uuid"]
        expect(track in self.tracks, f"an event is on track {track}, which was not described")
        name = self.get("event_names", event["name_iid"]) if event["name_iid"] else utf8(event["name"])
        if event["type"] == INSTANT:
            self.instants.append(name)
            return
        expect(time >= self.last[track], f"time goes back on track {track}")
        self.last[track] = time
        if event["type"] == BEGIN:
            self.open[track].append((name, time))
            return
        expect(event["type"] == END, f"an event has type {event['type']}")
        expect(self.open[track], f"a slice ends on track {track}, and none is open")
        name, begun = self.open[track].pop()
        self.by_track[self.tracks[track]] += 1
        if self.tracks[track] == "off the CPU":
            return
        self.slices[name][0] += 1
        if name not in [n for n, _ in self.open[track]]:  # an inner one is in the outer one's time
            self.slices[name][1] += time - begun

    def take(self, packet, i):
        expect(packet["sequence_id"] == 1, f"packet {i} is of another sequence")
        expect(packet["sequence_flags"] == CLEARED if i == 0 else packet["sequence_flags"] != CLEARED,
               f"packet {i} has flags {packet['sequence_flags']}")
        if packet["interned_data"]:
            self.take_interned(packet["interned_data"])
        if packet["track_descriptor"]:
            self.take_track(packet["track_descriptor"])
        for kind, take in (("perf_sample", lambda e, t: self.take_sample(e)), ("track_event", self.take_event)):
            if packet[kind]:
                expect(packet["sequence_flags"] == NEEDS_STATE, f"packet {i} does not say that it needs state")
                take(packet[kind], packet["timestamp"])


def main():
    with open(sys.argv[1], "rb") as file:
        packets = message(SCHEMA, "Trace", file.read())["packet"]
    reader = Reader()
    expect(packets and packets[0]["defaults"], "the first packet has no defaults")
    for i, packet in enumerate(packets):
        reader.take(packet, i)
    for track, left in reader.open.items():
        expect(not left, f"slices stay open on track {track}")
    json.dump({"samples": reader.samples, "self": reader.self_, "total": reader.total, "calls": reader.slices,
               "instants": reader.instants, "tracks": sorted(reader.tracks.values()), "slices": reader.by_track,
               "frequency": packets[0]["defaults"]["perf_sample_defaults"]["timebase"]["frequency"]}, sys.stdout)


main()
