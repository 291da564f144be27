// Reads a whole trace file.
#pragma once

#include <mallard/trace/trace_reader.hpp>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace mallard::testing {

inline std::vector<std::byte> bytes_of_file(const std::string& path)
{
    std::ifstream file(path, std::ios::binary);
    std::vector<char> const text((std::istreambuf_iterator<char>(file)), {});
    auto const bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

inline std::vector<trace_event> events_of(trace_reader& trace)
{
    std::vector<trace_event> events;
    while (auto const event = trace.next())
        events.push_back(*event);
    return events;
}

inline std::vector<mallard_trace_op> ops_of(const std::vector<trace_event>& events)
{
    std::vector<mallard_trace_op> ops;
    for (trace_event const& e : events)
        ops.push_back(e.op);
    return ops;
}

} // namespace mallard::testing
