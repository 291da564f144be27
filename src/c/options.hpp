// Reads and verifies the options of the C API. The caller's struct may be older or newer than this
// library.
#pragma once

#include "messages.hpp"
#include "source.hpp"

#include <mallard/options.hpp>

#include <cstring>

namespace mallard::c {

inline constexpr const char* growth_names[] = {"MALLARD_GROWTH_DEFAULT", "MALLARD_GROWTH_NONE",
                                               "MALLARD_GROWTH_FIXED", "MALLARD_GROWTH_LINEAR",
                                               "MALLARD_GROWTH_GEOMETRIC"};

/// The members that all three option structs have.
struct common_options {
    int growth, sync, reuse, check;
    std::size_t first_bytes, step_max_bytes, limit_bytes;
    std::size_t growth_num, growth_den, growth_add;
    source_choice from;
};

template <class Options>
common_options common_of(const Options& o) noexcept
{
    common_options common{.growth = o.growth,
                          .sync = o.sync,
                          .reuse = MALLARD_REUSE_DEFAULT,
                          .check = o.check,
                          .first_bytes = o.first_bytes,
                          .step_max_bytes = o.step_max_bytes,
                          .limit_bytes = o.limit_bytes,
                          .growth_num = o.growth_num,
                          .growth_den = o.growth_den,
                          .growth_add = o.growth_add,
                          .from = {o.take, o.give, o.context, o.buffer, o.buffer_bytes}};
    if constexpr (requires { o.reuse; })
        common.reuse = o.reuse;
    return common;
}

/// The verified options of an allocator.
struct choice {
    growth rule;
    bool fills_buffer = false; ///< whether the first chunk request uses the whole buffer
    source_choice from;
    sync threads = sync::none;
    reuse order = reuse::lifo;
    check checks = check::off;
};

/// The largest valid size of a struct. No version of a struct will be larger. The limit prevents
/// that an uninitialised size causes a read far beyond the struct.
inline constexpr std::size_t struct_bytes_max = 4096;

/// Copies those members that exist both in the caller's and in this library's version of the
/// struct. If the struct is not valid, records the failure and returns false.
bool read_struct(const char* function, const char* name, const void* given, void* taken,
                 std::size_t known_bytes) noexcept;

template <class Options>
bool read_struct(const char* function, const char* name, const Options* given,
                 Options& taken) noexcept
{
    taken = {};
    return given == nullptr || read_struct(function, name, given, &taken, sizeof taken);
}

/// Verifies the common options. `defaults` is the growth rule of the allocator in C++. If an option
/// is not valid, records the failure and returns false.
bool read_choice(const char* function, const common_options& options, const growth& defaults,
                 choice& chosen) noexcept;

/// Sets those members that exist both in the caller's and in this library's version of the struct.
/// Returns 0 or an error code.
int write_stats(const char* function, const statistics& s, mallard_stats* out) noexcept;

} // namespace mallard::c
