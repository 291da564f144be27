// Prints why a plan is not used, and how many requests each rule has served.
#pragma once

#include "plan.hpp"

namespace mallard::plan {

enum class form_of_stats { none, text, json };

/// The options from environment variables.
struct options {
    const char* plan = nullptr;   ///< MALLARD_PLAN: the path of the plan
    const char* report = nullptr; ///< MALLARD_PLAN_REPORT: a line of JSON is added to this file
    form_of_stats stats = form_of_stats::none; ///< MALLARD_STATS: 1, text or json
    bool is_control = false; ///< MALLARD_PLAN_CONTROL=1: malloc serves every request
    bool times_ends = false; ///< MALLARD_PLAN_TIMES=1: measure the last frees (`ending`)
    bool is_strict = false;  ///< MALLARD_PLAN_STRICT=1: exit if the plan cannot be used
};

/// Prints "mallard: the plan PATH WRONG", and ends the program if the options require that.
void tell_plan_is_off(options const& o, const char* wrong) noexcept;
/// Prints that the process has another build of a module than the plan, and ends the program if the
/// options require that.
void tell_other_build(options const& o, std::span<const char> module) noexcept;

/// Prints how many blocks each rule has served in this process.
void write_report(options const& o, plan const& p) noexcept;

} // namespace mallard::plan
