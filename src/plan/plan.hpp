// A compiled plan that was read from a file and checked: see spec/plan_format.md.
#pragma once

#include <mallard/trace/plan_format.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace mallard::plan {

/// The parts of a plan, in the memory of the file. All numbers in them are in range.
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

/// Checks the bytes of a file, and stores its parts in `into`, which refer to the bytes. Returns
/// null, or what is wrong with the file as a phrase without a subject, such as "is damaged". `file`
/// must be aligned to 8 bytes.
const char* read_plan(std::span<const std::byte> file, plan& into) noexcept;

/// Copies a file into memory and reads it. The copy stays if the result is null.
const char* open_plan(const char* path, plan& into) noexcept;

} // namespace mallard::plan
