#!/usr/bin/env python3
"""Reads a Perfetto trace with the classes that Perfetto itself publishes. `read_perfetto.py FILE`

Prints a JSON object with sums, the number of fields that these classes do not know, and the number of
ids that are used but not defined. The program needs PyPI's package perfetto.
"""
import json
import sys

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as messages


def unknown_fields(message):
    count = len(UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            values = value if field.is_repeated else [value]
            count += sum(unknown_fields(inner) for inner in values)
    return count


trace = messages.Trace()
trace.ParseFromString(open(sys.argv[1], "rb").read())
strings, frames, stacks, mappings = {}, {}, {}, {}
allocated = at_peak = broken = 0
for packet in trace.packet:
    profile = packet.profile_packet
    # A build-id is a string of arbitrary bytes.
    strings.update((entry.iid, entry.str.decode(errors="replace")) for entry in profile.strings)
    mappings.update((entry.iid, entry) for entry in profile.mappings)
    frames.update((entry.iid, entry) for entry in profile.frames)
    stacks.update((entry.iid, entry) for entry in profile.callstacks)
    for dump in profile.process_dumps:
        broken += sum(sample.callstack_id not in stacks for sample in dump.samples)
        if dump.heap_name == "malloc":
            allocated += sum(sample.self_allocated for sample in dump.samples)
        else:
            at_peak += sum(sample.self_allocated for sample in dump.samples)
broken += sum(frame not in frames for stack in stacks.values() for frame in stack.frame_ids)
broken += sum(frame.mapping_id not in mappings for frame in frames.values())
broken += sum(frame.function_name_id not in strings for frame in frames.values())
tracks = {packet.track_descriptor.uuid: packet.track_descriptor for packet in trace.packet
          if packet.HasField("track_descriptor")}
events = [packet.track_event for packet in trace.packet if packet.HasField("track_event")]
broken += sum(event.track_uuid not in tracks for event in events)
live = [event.counter_value for event in events
        if event.track_uuid in tracks and tracks[event.track_uuid].name == "live bytes"]
print(json.dumps({
    "allocated": allocated,
    "at_peak": at_peak,
    "live_max": max(live, default=0),
    "functions": sorted({strings.get(frame.function_name_id, "") for frame in frames.values()}),
    "unknown_fields": unknown_fields(trace),
    "broken_references": broken,
}))
