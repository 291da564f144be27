// Counts the memory of the local targets of a plan, without timing (level L0).
#pragma once

#include "local.hpp"

namespace mallard::replay {

/// The bytes that a program asks of a target.
struct requested_bytes {
    std::uint64_t now = 0;
    std::uint64_t peak = 0;

    void add(std::uint64_t bytes) noexcept
    {
        now += bytes;
        peak = now > peak ? now : peak;
    }
    void take(std::uint64_t bytes) noexcept { now -= bytes; }
};

/// Does the ops of the local targets, with the real allocators, on one thread and in the order of a
/// `walk`. Ops of target 0 are only added up. No block is written to, so pages are touched only
/// where an allocator does so.
class account {
public:
    account(stream const& of, windows& memory) noexcept;

    void run() noexcept;

    /// The local targets, as they are after the last op.
    local_targets const& targets() const noexcept { return targets_; }
    /// What the program asks of a target; of all targets together, for `target` 0, malloc included.
    requested_bytes const& requested(std::size_t target) const noexcept
    {
        return requested_[target];
    }
    std::uint64_t failures() const noexcept { return failures_; }

private:
    void visit(std::uint32_t thread, op const& o) noexcept;
    void visit_local(std::uint32_t thread, op const& o) noexcept;
    void add(op const& o) noexcept;
    void take(op const& o) noexcept;
    void allocate(op const& o) noexcept;
    void reallocate(op const& from, op const& o) noexcept;

    stream const& stream_;
    windows& memory_;
    local_targets targets_;
    table<void*> slots_;
    table<op> from_; // of each thread, the realloc_from before its next op, or zeros
    table<requested_bytes> requested_;
    std::uint64_t failures_ = 0;
};

} // namespace mallard::replay
