// Counts the memory of the local allocators of a plan, without timing (level L0).
#pragma once

#include "local.hpp"

namespace mallard::replay {

/// The bytes that a program requests from a target.
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

/// A replay of the calls of the local targets (all allocators of the plan except malloc), with the
/// real allocators, in one thread and in the order of a `walk`. For ops of target 0 (malloc), only
/// the bytes are added up. Blocks are not written, so only the allocators themselves touch pages.
class account {
public:
    account(stream const& of, windows& memory) noexcept;

    void run() noexcept;

    /// Returns the local targets in the state after the last op.
    local_targets const& targets() const noexcept { return targets_; }
    /// Returns the bytes that the program requests from a target. For `target` 0, returns the bytes
    /// from malloc and all local targets together.
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
    table<op> from_; // for each thread: a realloc_from that waits for its realloc
    table<requested_bytes> requested_;
    std::uint64_t failures_ = 0;
};

} // namespace mallard::replay
