// The fronts of one shared allocator, with their memory.
#pragma once

#include <mallard/detail/threads/locks.hpp>
#include <mallard/detail/threads/thread_fronts.hpp>

namespace mallard {

/// `Front` derives from `thread_front` and has a `chunk taken`. The first is part
/// of the allocator, so that one that only one thread uses takes no memory for it.
template <class Front>
class fronts_of : public front_home {
public:
    template <class... Args>
    constexpr explicit fronts_of(Args&... args) noexcept
        : front_home(
              [](thread_front& f, bool open) noexcept { static_cast<Front&>(f).set_open(open); }),
          house_(args...)
    {
        add_idle(house_);
    }

    /// This thread's, found, adopted or made from `args`; null when there is no
    /// memory for it.
    template <class Source, class... Args>
    Front* own(Source& source, Args&... args) noexcept
    {
        Front* const known = found();
        return known != nullptr ? known : make(std::unique_lock(growing), source, args...);
    }

    /// The same; null, too, when it would have to wait for a thread that grows.
    template <class Source, class... Args>
    Front* own_at_once(Source& source, Args&... args) noexcept
    {
        Front* const known = found();
        return known != nullptr
                   ? known
                   : make(std::unique_lock(growing, std::try_to_lock), source, args...);
    }

    /// Until those who have frozen the fronts are done.
    void wait_for_thaw() const noexcept { std::lock_guard const until_then(lock); }

    // --- with the lock held

    Front& house() noexcept { return house_; }
    Front* first() const noexcept { return static_cast<Front*>(fronts()); }
    static Front* next(Front* f) noexcept { return static_cast<Front*>(f->next_of_home()); }

    std::size_t bytes() const noexcept
    {
        std::size_t sum = 0;
        for (Front* f = first(); f != nullptr; f = next(f))
            sum += f->taken.bytes;
        return sum;
    }

    /// Gives back those that are idle, but for the house's, where `is_empty(f)`.
    template <class Source, class IsEmpty>
    void give_idle(Source& source, IsEmpty is_empty) noexcept
    {
        for (Front* f = first(); f != nullptr;) {
            Front* const after = next(f);
            if (f->is_idle() && f != &house_ && is_empty(*f)) {
                remove_idle(*f);
                give(source, f->taken);
            }
            f = after;
        }
    }

    // --- while no other thread is inside a call, after `part`

    template <class Source>
    void give_all(Source& source) noexcept
    {
        give_idle(source, [](const Front&) { return true; });
    }
    /// For a source that takes everything back by itself.
    void forget_all() noexcept
    {
        forget_fronts();
        add_idle(house_);
    }

private:
    Front* found() noexcept
    {
        thread_front* const f = here();
        return static_cast<Front*>(f != nullptr ? f : find_or_adopt());
    }

    template <class Source, class... Args>
    Front* make(std::unique_lock<std::recursive_mutex> alone, Source& source,
                Args&... args) noexcept
    {
        chunk const taken = alone ? try_take(source, layout_of<Front>()) : chunk{};
        if (taken.data == nullptr)
            return nullptr;
        auto* const f = ::new (taken.data) Front(args...);
        f->taken = taken;
        if (join(*f))
            return f;
        give(source, taken);
        return nullptr;
    }

    Front house_;
};

} // namespace mallard
