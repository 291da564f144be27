// The cost of a virtual call on this machine.
#pragma once

namespace mallard::replay {

/// Nanoseconds of one call, as the median of repetitions.
struct call_cost {
    double direct_ns = 0;  ///< of a function that the compiler knows
    double virtual_ns = 0; ///< of the same function through std::pmr::memory_resource
};

/// The cost of an allocation through a memory resource, compared with a direct call. Both calls do
/// the same work: a trace does not say what a program gains by inlining or by constant sizes.
struct virtual_call_cost {
    call_cost one_target;  ///< all calls have one target: the processor predicts them
    call_cost alternating; ///< the target of each call is one of four, in random order
    call_cost cold;        ///< the tables, objects and code are not in the first caches
};

/// Measures for about a second.
virtual_call_cost measure_virtual_calls() noexcept;

} // namespace mallard::replay
