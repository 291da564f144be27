// The options of the C API: read from a struct of any age, and verified.
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

/// What an allocator is made of.
struct choice {
    growth rule;
    bool fills_buffer = false; ///< the first step is all of the buffer
    source_choice from;
    sync threads = sync::none;
    reuse order = reuse::lifo;
    check checks = check::off;
};

/// Copies the members that both the caller and this library know. False: failed.
/// `struct_bytes_max` is more than any version will ever have, and stands between
/// a struct that was never set and a read far beyond it.
inline constexpr std::size_t struct_bytes_max = 4096;

bool read_struct(const char* function, const char* name, const void* given, void* taken,
                 std::size_t known_bytes) noexcept;

template <class Options>
bool read_struct(const char* function, const char* name, const Options* given,
                 Options& taken) noexcept
{
    taken = {};
    return given == nullptr || read_struct(function, name, given, &taken, sizeof taken);
}

/// `defaults`: the growth that the allocator has in C++. False: failed.
bool read_choice(const char* function, const common_options& options, const growth& defaults,
                 choice& chosen) noexcept;

/// Fills the caller's struct, as far as both know it; 0 or an error.
int write_stats(const char* function, const statistics& s, mallard_stats* out) noexcept;

} // namespace mallard::c
