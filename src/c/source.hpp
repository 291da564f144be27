// The source of an allocator in the C API, which is malloc, two functions of the caller, or a
// buffer of the caller.
#pragma once

#include "error.hpp"

#include <mallard/source.hpp>

#include <mutex>

namespace mallard::c {

/// The source that the options select. If all members are null, it is malloc.
struct source_choice {
    mallard_take take = nullptr;
    mallard_give give = nullptr;
    void* context = nullptr;
    void* buffer = nullptr;
    std::size_t buffer_bytes = 0;
};

/// A source that is selected at run time. Each request for memory tests which source was selected.
/// The test is cheap compared with the request.
class chosen_source {
public:
    /// True, because several threads may use the source at the same time. malloc needs no lock. The
    /// caller's functions and buffer are used under a lock.
    static constexpr bool any_thread = true;

    explicit chosen_source(const source_choice& choice) noexcept;
    /// Moves a source that no other thread uses yet.
    chosen_source(chosen_source&& other) noexcept;

    chunk try_take(layout l) noexcept;
    void give(chunk c) noexcept;

    /// Allocates the memory of the handle. Must be called before any chunk is allocated. If the
    /// source is a buffer, chunks come from the bytes after the handle, and all these bytes are
    /// free again when all chunks are returned.
    chunk try_take_handle(layout l) noexcept;
    void give_handle(chunk c) noexcept;

    /// Returns the number of unused bytes in a buffer.
    std::size_t bytes_left() const noexcept { return left_.size(); }

    /// Records why an allocation failed. The reason is the last failure of this source in this
    /// thread. If there is no such failure, the reason is the limit, or an exhausted buffer, or a
    /// failure in another thread.
    [[gnu::cold]] mallard_error fail_allocation(const char* function,
                                                std::size_t limit) const noexcept;

private:
    bool is_buffer() const noexcept { return choice_.buffer != nullptr; }
    bool is_heap() const noexcept { return choice_.take == nullptr && !is_buffer(); }
    void* take_locked(layout l) noexcept;
    const message& failure_message() const noexcept;

    source_choice choice_;
    std::span<std::byte> left_;
    taken_front taken_;
    std::mutex lock_;
};

using visitor = void (*)(void* context, void* block);

// The functions below call a function of the caller. No exception can propagate out of these calls
// (see call.cpp).
void* call_take(const source_choice& to, std::size_t bytes, std::size_t align) noexcept;
void call_give(const source_choice& to, chunk c) noexcept;
void call_visit(visitor visit, void* context, void* block) noexcept;

} // namespace mallard::c
