// Objects in an arena: made, owned, copied.
#pragma once

#include <mallard/detail/arena/finalizers.hpp>
#include <mallard/detail/base/draft.hpp>

#include <concepts>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>

namespace mallard {

/// What `A`, an arena, derives from to make objects. No constructor runs under a
/// lock of the arena's.
template <class A>
class arena_objects {
public:
    /// Makes an object whose destructor will not run.
    template <class T, class... Args>
    T& make(Args&&... args)
    {
        return *construct<T>(draft(self(), layout_of<T>()), std::forward<Args>(args)...);
    }

    /// Null when the source is dry.
    template <class T, class... Args>
    T* try_make(Args&&... args)
    {
        void* const block = self().try_allocate(layout_of<T>());
        return block == nullptr ? nullptr
                                : construct<T>(draft(self(), layout_of<T>(), block),
                                               std::forward<Args>(args)...);
    }

    /// Makes an object whose destructor runs at the next `reset`, `release` or
    /// `rewind` beyond it, or at the arena's end, newest first. Costs 24 bytes.
    template <class T, class... Args>
    T& own(Args&&... args)
    {
        if constexpr (std::is_trivially_destructible_v<T>) {
            return make<T>(std::forward<Args>(args)...);
        } else {
            draft entry(self(), finalizers::entry_layout);
            T& object = make<T>(std::forward<Args>(args)...);
            self().with_owned(
                [&](finalizers& owned) { owned.destroy_later(entry.keep(), object); });
            return object;
        }
    }

    /// Runs `f()` when an object owned here and now would be destroyed.
    template <std::invocable F>
    void defer(F f)
    {
        draft entry(self(), finalizers::entry_layout);
        F& kept = make<F>(std::move(f));
        self().with_owned([&](finalizers& owned) { owned.call_later(entry.keep(), kept); });
    }

    /// `count` value-initialised objects, whose destructors will not run.
    template <class T>
    std::span<T> make_array(std::size_t count)
    {
        draft block(self(), layout_of<T>(count));
        std::uninitialized_value_construct_n(static_cast<T*>(block.get()), count);
        return {static_cast<T*>(block.keep()), count};
    }

    /// The same characters, here.
    std::string_view copy(std::string_view text)
    {
        auto* const first = static_cast<char*>(self().allocate({text.size(), 1}));
        if (!text.empty())
            std::memcpy(first, text.data(), text.size());
        return {first, text.size()};
    }

private:
    A& self() noexcept { return static_cast<A&>(*this); }

    template <class T, class... Args>
    static T* construct(draft<A> block, Args&&... args)
    {
        T* const object =
            std::construct_at(static_cast<T*>(block.get()), std::forward<Args>(args)...);
        block.keep();
        return object;
    }
};

} // namespace mallard
