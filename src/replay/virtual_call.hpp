// Measures the cost of a virtual call on this machine.
#pragma once

namespace mallard::replay {

/// The duration of one call in nanoseconds, as the median of many repetitions.
struct call_cost {
    double direct_ns = 0;  ///< direct call of a known function
    double virtual_ns = 0; ///< virtual call through std::pmr::memory_resource
};

/// The cost of an allocation through a memory resource, compared with a direct call. Both calls do
/// the same work. Savings by inlining or by constant sizes are not included, because a trace does
/// not show them.
struct virtual_call_cost {
    call_cost one_target;  ///< all calls have the same target, which the processor predicts
    call_cost alternating; ///< each call has one of four targets, in random order
    call_cost cold;        ///< tables, objects and code are not in the L1 and L2 caches
};

/// Measures the cost of virtual calls. Takes about a second.
virtual_call_cost measure_virtual_calls() noexcept;

} // namespace mallard::replay
