// What the library prints: why a plan is off, and what each rule has served.
#pragma once

#include "plan.hpp"

namespace mallard::plan {

enum class form_of_stats { none, text, json };

/// What the environment asks for.
struct options {
    const char* plan = nullptr;   ///< MALLARD_PLAN: the path of the plan
    const char* report = nullptr; ///< MALLARD_PLAN_REPORT: a line of JSON is added to this file
    form_of_stats stats = form_of_stats::none; ///< MALLARD_STATS: 1, text or json
    bool is_control = false; ///< MALLARD_PLAN_CONTROL=1: malloc serves every request
    bool times_ends = false; ///< MALLARD_PLAN_TIMES=1: time the frees of the last blocks
    bool is_strict = false;  ///< MALLARD_PLAN_STRICT=1: a plan that is off ends the program
};

/// Prints "mallard: the plan PATH WRONG", and ends the program if the options say so.
void tell_plan_is_off(options const& o, const char* wrong) noexcept;
/// Prints that a module is of another build than the plan's, and ends the program if the options
/// say so.
void tell_other_build(options const& o, std::span<const char> module) noexcept;

/// Prints what each rule has served in this process.
void write_report(options const& o, plan const& p) noexcept;

} // namespace mallard::plan
