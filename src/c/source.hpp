// Where an allocator of a C program takes its chunks: malloc, a caller's two
// functions, or a caller's bytes.
#pragma once

#include "error.hpp"

#include <mallard/source.hpp>

#include <mutex>

namespace mallard::c {

/// What the options say. All null: malloc.
struct source_choice {
    mallard_take take = nullptr;
    mallard_give give = nullptr;
    void* context = nullptr;
    void* buffer = nullptr;
    std::size_t buffer_bytes = 0;
};

/// A source that was chosen at run time. Each take tests what it is, which is
/// nothing beside the take itself.
class chosen_source {
public:
    /// malloc needs no lock; a caller's functions and buffer have one.
    static constexpr bool any_thread = true;

    explicit chosen_source(const source_choice& choice) noexcept;
    /// While no other thread knows of it.
    chosen_source(chosen_source&& other) noexcept;

    chunk try_take(layout l) noexcept;
    void give(chunk c) noexcept;

    /// Memory for a handle, before all else and until after all else: a buffer is
    /// what is left of it from then on, so that it is whole again when all but the
    /// handle is given back.
    chunk try_take_handle(layout l) noexcept;
    void give_handle(chunk c) noexcept;

    /// Of a buffer.
    std::size_t bytes_left() const noexcept { return left_.size(); }

    /// Says why an allocation from this source failed: because of what the source
    /// said in this thread, or else because `limit` is reached.
    [[gnu::cold]] mallard_error fail_allocation(const char* function,
                                                std::size_t limit) const noexcept;

private:
    bool is_buffer() const noexcept { return choice_.buffer != nullptr; }
    bool is_heap() const noexcept { return choice_.take == nullptr && !is_buffer(); }
    void* take_locked(layout l) noexcept;
    const message& refusal_message() const noexcept;

    source_choice choice_;
    std::span<std::byte> left_;
    taken_front taken_;
    std::mutex lock_;
};

using visitor = void (*)(void* context, void* block);

// Call a caller's function from a frame that no exception passes: see call.cpp.
void* call_take(const source_choice& to, std::size_t bytes, std::size_t align) noexcept;
void call_give(const source_choice& to, chunk c) noexcept;
void call_visit(visitor visit, void* context, void* block) noexcept;

} // namespace mallard::c
