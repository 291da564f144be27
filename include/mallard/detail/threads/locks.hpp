// The locks of allocators for several threads.
#pragma once

#include <mallard/detail/base/chunk_source.hpp>
#include <mallard/detail/base/no_mutex.hpp>
#include <mallard/options.hpp>

#include <mutex>

namespace mallard {

template <bool Shared>
using mutex_if = std::conditional_t<Shared, std::mutex, no_mutex>;

/// Lets go of a lock and takes it again at its end, by an exception too.
class unlocked {
public:
    explicit unlocked(std::unique_lock<std::mutex>& held) : held_(held) { held_.unlock(); }
    ~unlocked() { held_.lock(); }
    unlocked(const unlocked&) = delete;
    unlocked& operator=(const unlocked&) = delete;

private:
    std::unique_lock<std::mutex>& held_;
};

/// A source as a core sees it that is locked: while it takes, others go on.
template <source Source>
class unlocked_source {
public:
    unlocked_source(Source& from, std::unique_lock<std::mutex>& held) noexcept
        : from_(from), held_(held)
    {
    }

    chunk try_take(layout l) noexcept
    {
        unlocked const others_go_on(held_);
        return mallard::try_take(from_, l);
    }
    chunk take(layout l)
    {
        unlocked const others_go_on(held_);
        return mallard::take(from_, l);
    }
    void give(chunk c) noexcept
    {
        unlocked const others_go_on(held_);
        mallard::give(from_, c);
    }

private:
    Source& from_;
    std::unique_lock<std::mutex>& held_;
};

/// Keeps what is given until its end: made before a lock is taken, it calls the
/// source after that is gone. The bytes themselves hold the list.
template <source Source>
class later_source {
    struct node {
        node* next;
        chunk given;
    };

public:
    static constexpr std::size_t bytes_min = sizeof(node);

    explicit later_source(Source& to) noexcept : to_(to) {}
    later_source(const later_source&) = delete;
    later_source& operator=(const later_source&) = delete;
    ~later_source()
    {
        while (first_ != nullptr) {
            chunk const given = first_->given;
            first_ = first_->next;
            mallard::give(to_, given);
        }
    }

    static chunk try_take(layout) noexcept { return {}; }
    void give(chunk c) noexcept { first_ = ::new (c.data) node{first_, c}; }

private:
    Source& to_;
    node* first_ = nullptr;
};

/// A source that one thread may call at a time, behind a lock. It converts to the source.
template <source Source>
class locked_source {
public:
    constexpr locked_source() noexcept = default;
    constexpr explicit locked_source(Source from) noexcept : bare_(std::move(from)) {}

    chunk try_take(layout l) noexcept
    {
        std::lock_guard const one_at_a_time(lock_);
        return mallard::try_take(bare_, l);
    }
    chunk take(layout l)
    {
        std::lock_guard const one_at_a_time(lock_);
        return mallard::take(bare_, l);
    }
    void give(chunk c) noexcept
    {
        std::lock_guard const one_at_a_time(lock_);
        mallard::give(bare_, c);
    }

    operator Source&() noexcept { return bare_; }
    operator const Source&() const noexcept { return bare_; }
    constexpr std::mutex* mutex() noexcept { return &lock_; }

private:
    [[no_unique_address]] Source bare_{};
    std::mutex lock_;
};

/// The source that an allocator for several threads calls: `Source` itself if any thread may
/// call it, else `Source` behind a lock.
template <source Source>
using shared_source = std::conditional_t<shareable<Source>, Source, locked_source<Source>>;

/// The lock of a `shared_source`, or null.
template <source Source>
constexpr std::mutex* mutex_of(Source&) noexcept
{
    return nullptr;
}
template <source Source>
constexpr std::mutex* mutex_of(locked_source<Source>& locked) noexcept
{
    return locked.mutex();
}

} // namespace mallard
