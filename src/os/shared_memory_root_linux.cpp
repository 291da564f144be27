// Constructs the root object of a segment. Exactly one process constructs the root, even if several
// processes start at the same time, or if a process is killed during the construction.
#include "process_linux.hpp"

#include <mallard/persist/shared_memory.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace mallard {
namespace {

constexpr system_error is_another_type{
    EINVAL, "the root of this segment has another type, or another version of the type: remove the "
            "segment, or see mallard::layout_hash"};
constexpr system_error root_is_damaged{
    EBADMSG, "a stray write corrupted the data that leads to the root: remove the segment"};
constexpr system_error no_room_for_root{
    ENOMEM, "the segment has no room for the root: create a larger one"};

void wait_a_moment() noexcept
{
    timespec const moment{.tv_sec = 0, .tv_nsec = 100'000};
    ::nanosleep(&moment, nullptr);
}

} // namespace

shared_memory::root_place shared_memory::enter_root(layout l, std::uint64_t hash) noexcept
{
    if (bytes_ == 0)
        return {}; // `make` or `find` has stored the reason why there is no segment
    std::uint64_t const mine = checked_number::of(os::mark_of_this_process());
    for (;;) {
        std::uint64_t state = header_->root_state;
        if (state == segment_header::root_is_ready)
            return {find_root(l, hash), true};
        if (!checked_number::is_sound(state))
            return {refuse(root_is_damaged), true};
        if (state != 0 && os::is_alive(checked_number::in(state)))
            wait_a_moment();
        else if (header_->root_state.compare_exchange_strong(state, mine))
            return {place_root(l, hash), false};
    }
}

void* shared_memory::find_root(layout l, std::uint64_t hash) noexcept
{
    if (header_->root_hash != hash)
        return refuse(is_another_type);
    std::uint64_t const root = header_->root;
    if (!segment_header::is_offset(root, bytes_ - std::min(l.bytes, bytes_)))
        return refuse(root_is_damaged);
    return base() + checked_number::in(root);
}

/// Returns memory for the root. Only the process that constructs the root calls this function. If
/// an earlier process was killed while it constructed a root of the same type, returns the memory
/// that the earlier process had allocated. If the calling process is killed before it stores `root`
/// at the end, the next process allocates again.
void* shared_memory::place_root(layout l, std::uint64_t hash) noexcept
{
    if (header_->root != 0 && header_->root_hash == hash) {
        void* const place = find_root(l, hash);
        return place == nullptr ? give_up_root() : std::memset(place, 0, l.bytes);
    }
    void* const place = try_allocate(l);
    if (place == nullptr) {
        refuse(no_room_for_root);
        return give_up_root();
    }
    header_->root = 0;
    header_->root_hash = hash;
    header_->root =
        checked_number::of(static_cast<std::size_t>(static_cast<std::byte*>(place) - base()));
    return place;
}

std::nullptr_t shared_memory::give_up_root() noexcept
{
    leave_root(false);
    return nullptr;
}

void shared_memory::leave_root(bool constructed) noexcept
{
    header_->root_state = constructed ? segment_header::root_is_ready : 0;
}

} // namespace mallard
