// Prints a snapshot of an allocator as text, or as JSON.
#pragma once

#include <mallard/adapt/counted.hpp>

#include <span>
#include <string_view>

namespace mallard {

/// The text of a report, in a buffer that the caller provides.
///
///     if (mallard::written const w = mallard::report_json(room, "orders", s); !w.is_cut())
///         send(w.text);
struct written {
    std::string_view text;    ///< the whole text, or as much as fits with "..." at the end
    std::size_t bytes_needed; ///< the size of the whole text

    /// Returns whether the text was truncated because the buffer of the caller is too small.
    constexpr bool is_cut() const noexcept { return bytes_needed > text.size(); }
    constexpr operator std::string_view() const noexcept { return text; } ///< the text
};

/// One number of a snapshot, with its name. The number is negative if more was freed than allocated
/// in the `counting_scope` that it comes from.
struct figure {
    const char* name;      ///< what the number counts
    std::ptrdiff_t number; ///< the value

    /// Makes a figure with this name and value.
    constexpr figure(const char* what, std::ptrdiff_t how_many) noexcept
        : name(what), number(how_many)
    {
    }
    /// Makes a figure with this name and value, which must fit a `std::ptrdiff_t`.
    constexpr figure(const char* what, std::size_t how_many) noexcept
        : name(what), number(static_cast<std::ptrdiff_t>(how_many))
    {
    }
};

/// Calls `f(group, figures)` for each group of figures in a snapshot. The groups are "calls" and
/// "memory".
template <class F>
constexpr void for_each_group(const snapshot& s, F f)
{
    if (s.calls) {
        call_counts const& c = *s.calls;
        figure const figures[] = {
            {"allocations", c.allocations}, {"frees", c.frees},
            {"failures", c.failures},       {"blocks_live", c.blocks_live()},
            {"blocks_peak", c.blocks_peak}, {"bytes_live", c.bytes_live()},
            {"bytes_peak", c.bytes_peak},   {"bytes_allocated", c.bytes_allocated},
            {"bytes_freed", c.bytes_freed}};
        f("calls", std::span<const figure>(figures));
    }
    if (s.memory) {
        statistics const& m = *s.memory;
        figure const figures[] = {{"blocks_live", m.blocks_live}, {"bytes_live", m.bytes_live},
                                  {"bytes_idle", m.bytes_idle},   {"bytes_taken", m.bytes_taken},
                                  {"chunks", m.chunks},           {"growths", m.growths},
                                  {"refills", m.refills},         {"flushes", m.flushes}};
        f("memory", std::span<const figure>(figures));
    }
}

/// Returns the finished text. If it does not fit in `room`, replaces its last three characters by
/// dots.
constexpr written finish(std::span<char> room, const text_writer& out) noexcept
{
    if (out.needed() > room.size())
        for (char& c : room.last(std::min(room.size(), std::size_t{3})))
            c = '.';
    return {{room.data(), out.written()}, out.needed()};
}

/// Writes a number, in decimal.
constexpr void write_number(text_writer& out, std::ptrdiff_t number) noexcept
{
    if (number < 0)
        out << '-';
    out << (number < 0 ? -static_cast<std::size_t>(number) : static_cast<std::size_t>(number));
}

/// Writes a snapshot as text: the name, each group, and one line for each number. Allocates
/// nothing, and writes only to `room`, for which 1 KiB is enough if the name is short.
///
///     std::array<char, 1024> room;
///     std::cerr << mallard::report_text(room, "orders", mallard::snapshot_of(orders)).text;
///
/// `what` may also be the `stats()` or the `counts()` of an allocator.
inline written report_text(std::span<char> room, std::string_view name,
                           const snapshot& what) noexcept
{
    constexpr std::size_t name_width = 16, number_width = 20;
    text_writer out(room.data(), room.size());
    auto const spaces_until = [&out](std::size_t column) {
        while (out.needed() < column)
            out << ' ';
    };
    for (char const c : name)
        out << c;
    out << '\n';
    for_each_group(what, [&](const char* group, std::span<const figure> figures) {
        out << "  " << group << '\n';
        for (figure const& f : figures) {
            text_writer digits(nullptr, 0); // counts the digits
            write_number(digits, f.number);
            std::size_t const line = out.needed();
            out << "    " << f.name;
            spaces_until(line + 4 + name_width + number_width - digits.needed());
            write_number(out, f.number);
            out << '\n';
        }
    });
    return finish(room, out);
}

/// Writes a snapshot as one JSON object on one line, without a newline. If the text is truncated,
/// it is not valid JSON.
///
///     {"name":"orders","calls":{"allocations":3,...},"memory":{"blocks_live":1,...}}
///
/// The name is escaped. It must be UTF-8, or else the JSON is not valid.
inline written report_json(std::span<char> room, std::string_view name,
                           const snapshot& what) noexcept
{
    text_writer out(room.data(), room.size());
    out << "{\"name\":\"";
    for (char const c : name) {
        auto const code = static_cast<unsigned char>(c);
        if (code < 0x20)
            out << "\\u00" << "01"[code >> 4] << "0123456789abcdef"[code & 15];
        else if (c == '"' || c == '\\')
            out << '\\' << c;
        else
            out << c;
    }
    out << '"';
    for_each_group(what, [&out](const char* group, std::span<const figure> figures) {
        out << ",\"" << group << "\":";
        char before = '{';
        for (figure const& f : figures) {
            out << std::exchange(before, ',') << '"' << f.name << "\":";
            write_number(out, f.number);
        }
        out << '}';
    });
    out << '}';
    return finish(room, out);
}

} // namespace mallard
