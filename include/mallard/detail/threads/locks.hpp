// Locks around sources, for allocators that several threads use.
#pragma once

#include <mallard/detail/base/chunk_source.hpp>
#include <mallard/detail/base/no_mutex.hpp>
#include <mallard/options.hpp>

#include <mutex>

namespace mallard {

template <bool Shared>
using mutex_if = std::conditional_t<Shared, std::mutex, no_mutex>;

/// The source of an allocator that holds a lock. Releases that lock, calls the actual source, and
/// locks again, even after an exception.
template <source Source>
class unlocked_source {
public:
    unlocked_source(Source& from, std::unique_lock<std::mutex>& held) noexcept
        : from_(from), held_(held)
    {
    }

    chunk try_take(layout l) noexcept
    {
        return unlocked([&]() noexcept { return mallard::try_take(from_, l); });
    }
    chunk take(layout l)
    {
        return unlocked([&] { return mallard::take(from_, l); });
    }
    void give(chunk c) noexcept
    {
        unlocked([&]() noexcept { mallard::give(from_, c); });
    }

private:
    struct relock {
        std::unique_lock<std::mutex>& held;
        ~relock() { held.lock(); }
    };

    template <class F>
    auto unlocked(F f) noexcept(noexcept(f()))
    {
        held_.unlock();
        relock const at_return{held_};
        return f();
    }

    Source& from_;
    std::unique_lock<std::mutex>& held_;
};

/// Collects chunks, and returns them to the source in its destructor. If you construct the object
/// before you lock, the source is called after the lock is released. The links of the list are in
/// the chunks themselves.
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

/// Puts a lock around a source that only one thread at a time may call. Converts to the wrapped
/// source.
template <source Source>
class locked_source {
public:
    constexpr locked_source() noexcept = default;
    constexpr explicit locked_source(Source from) noexcept : bare_(std::move(from)) {}

    chunk try_take(layout l) noexcept
    {
        std::lock_guard const alone(lock_);
        return mallard::try_take(bare_, l);
    }
    chunk take(layout l)
    {
        std::lock_guard const alone(lock_);
        return mallard::take(bare_, l);
    }
    void give(chunk c) noexcept
    {
        std::lock_guard const alone(lock_);
        mallard::give(bare_, c);
    }

    operator Source&() noexcept { return bare_; }
    operator const Source&() const noexcept { return bare_; }
    constexpr std::mutex* mutex() noexcept { return &lock_; }

private:
    [[no_unique_address]] Source bare_{};
    std::mutex lock_;
};

/// The source that an allocator for several threads calls. It is `Source` itself if any thread may
/// call it, and otherwise `Source` behind a lock.
template <source Source>
using shared_source = std::conditional_t<shareable<Source>, Source, locked_source<Source>>;

/// Returns the lock of a `shared_source`, or null.
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
