// The sources of the C API, and the reasons for their failures.
#include "source.hpp"

#include "messages.hpp"

#include <cstdlib>

namespace mallard::c {
namespace {

/// The last request of this thread that failed in a source. After such a request, the allocator
/// requests less memory from the source, so the program's call may still succeed.
struct failed_take {
    const chosen_source* by = nullptr;
    const message* why = nullptr;
    value details[2];
};

constinit thread_local failed_take last; // thread-local like the last failure (error.cpp)
static_assert(sizeof last <= 32);

void* take_from_heap(layout l) noexcept
{
    if (l.align == alignof(std::max_align_t))
        return std::malloc(l.bytes);
    void* data = nullptr;
    return ::posix_memalign(&data, l.align, l.bytes) == 0 ? data : nullptr;
}

/// Discards the last failed request of this thread if an earlier source had the address of `source`
/// and caused that failure.
void begin(const chosen_source* source) noexcept
{
    if (last.by == source)
        last = {};
}

} // namespace

chosen_source::chosen_source(const source_choice& choice) noexcept
    : choice_(choice), left_(static_cast<std::byte*>(choice.buffer), choice.buffer_bytes)
{
    begin(this);
}

chosen_source::chosen_source(chosen_source&& other) noexcept
    : choice_(other.choice_), left_(other.left_)
{
    begin(this);
}

chunk chosen_source::try_take(layout l) noexcept
{
    if (l.bytes > bytes_max - page_bytes || l.align > bytes_max / 2) {
        last = {this, &messages::too_large, {l.bytes, l.align}};
        return {};
    }
    // posix_memalign needs an alignment of at least 8.
    l.align = std::max(l.align, alignof(std::max_align_t));
    void* const data = is_heap() ? take_from_heap(l) : take_locked(l);
    if (data == nullptr) {
        last = {this, &failure_message(), {l.bytes, l.align}};
        return {};
    }
    chunk const taken{data, l.bytes, l.align};
    // The caller's function returned misaligned memory, which breaks its contract.
    if (reinterpret_cast<std::uintptr_t>(data) % l.align != 0) {
        give(taken);
        last = {this, &messages::misaligned, {static_cast<const void*>(data), l.align}};
        return {};
    }
    if (last.by == this)
        last = {};
    return taken;
}

void* chosen_source::take_locked(layout l) noexcept
{
    std::lock_guard const one_at_a_time(lock_);
    return is_buffer() ? taken_.try_take(left_, l).data : call_take(choice_, l.bytes, l.align);
}

void chosen_source::give(chunk c) noexcept
{
    if (is_heap())
        return std::free(c.data);
    std::lock_guard const one_at_a_time(lock_);
    if (is_buffer())
        taken_.give(left_, c);
    else
        call_give(choice_, c);
}

chunk chosen_source::try_take_handle(layout l) noexcept
{
    chunk const self = try_take(l);
    if (self.data != nullptr && is_buffer()) {
        std::byte* const rest = static_cast<std::byte*>(self.data) + self.bytes;
        left_ = left_.subspan(static_cast<std::size_t>(rest - left_.data()));
        taken_ = {};
    }
    return self;
}

void chosen_source::give_handle(chunk c) noexcept
{
    if (!is_buffer())
        give(c);
}

const message& chosen_source::failure_message() const noexcept
{
    return is_heap()     ? messages::heap_failed
           : is_buffer() ? messages::buffer_full
                         : messages::take_failed;
}

mallard_error chosen_source::fail_allocation(const char* function, std::size_t limit) const noexcept
{
    if (last.by == this) {
        failed_take const said = std::exchange(last, {});
        return fail(*said.why, function, said.details[0], said.details[1]);
    }
    if (limit != growth{}.limit)
        return fail(messages::limit_reached, function, limit);
    if (is_buffer())
        return fail(messages::buffer_used_up, function, choice_.buffer_bytes);
    return fail(messages::others_failed,
                function); // the source failed in another thread, for which this thread waited
}

} // namespace mallard::c
