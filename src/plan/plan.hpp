// Reads a compiled plan from a file, and checks it. spec/plan_format.md describes the format.
#pragma once

#include <mallard/trace/plan_format.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace mallard::plan {

/// The arrays of a plan, which point into the memory that contains the file. All indices and counts
/// in the arrays are in range.
struct plan {
    std::span<const mallard_plan_module> modules;
    std::span<const mallard_plan_rule> rules;
    std::span<const mallard_plan_place> callers;
    std::span<const mallard_plan_stack> stacks;
    std::span<const mallard_plan_place> frames;
    std::span<const mallard_plan_range> ranges;
    const char* text = nullptr;

    std::span<const char> text_of(mallard_plan_text of) const noexcept
    {
        return {text + of.at, of.bytes};
    }
};

/// Checks the bytes of a file, and stores the arrays of the plan in `into`, which point to these
/// bytes. Returns null if the file is valid. Otherwise returns a description of the error without a
/// subject, such as "is corrupt". `file` must be aligned to 8 bytes.
const char* read_plan(std::span<const std::byte> file, plan& into) noexcept;

/// Copies a file into memory and reads it with `read_plan`, whose result it returns. If the result
/// is null, the copy stays in memory.
const char* open_plan(const char* path, plan& into) noexcept;

} // namespace mallard::plan
