// The base class of every arena, with the functions that make, own and copy objects.
#pragma once

#include <mallard/detail/base/bits.hpp>
#include <mallard/detail/base/undo.hpp>

#include <concepts>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace mallard {

/// A list of destructors and functions to run before an arena frees its memory. The newest entry
/// runs first. The entries are in the arena itself, next to the objects.
class finalizers {
    struct entry {
        entry* next;
        void (*run)(void*) noexcept;
        void* object;
    };

public:
    /// Points to an entry of the list. Entries that were added later are newer.
    using position = entry*;
    static constexpr layout entry_layout = layout_of<entry>();

    position newest() const noexcept { return newest_; }

    /// Adds an entry that destroys `object`. `memory` is a block of layout `entry_layout` for the
    /// entry.
    template <class T>
    void destroy_later(void* memory, T& object) noexcept
    {
        push(memory, &object, [](void* p) noexcept { std::destroy_at(static_cast<T*>(p)); });
    }

    /// Adds an entry that calls `f` and then destroys `f`.
    template <class F>
    void call_later(void* memory, F& f) noexcept
    {
        push(memory, &f, [](void* p) noexcept {
            (*static_cast<F*>(p))();
            std::destroy_at(static_cast<F*>(p));
        });
    }

    /// Runs and removes all entries newer than `last`, newest first.
    void run_until(position last) noexcept
    {
        while (newest_ != last) {
            entry const due = *std::exchange(newest_, newest_->next);
            due.run(due.object);
        }
    }

private:
    void push(void* memory, void* object, void (*run)(void*) noexcept) noexcept
    {
        newest_ = ::new (memory) entry{newest_, run, object};
    }

    entry* newest_ = nullptr;
};

/// Makes objects in the arena `A`, which derives from this class. No lock is held while a
/// constructor runs.
template <class A>
class arena_objects {
public:
    /// Makes a `T` whose destructor will not run. Throws `std::bad_alloc` when memory is
    /// exhausted, and what the constructor throws.
    ///
    ///     auto& node = scratch.make<tree_node>(7);
    template <class T, class... Args>
    T& make(Args&&... args)
    {
        return *construct<T>(self().allocate(layout_of<T>()), std::forward<Args>(args)...);
    }

    /// Like `make`, but returns null when memory is exhausted.
    ///
    ///     if (auto* node = scratch.try_make<tree_node>(7)) ...
    template <class T, class... Args>
    T* try_make(Args&&... args)
    {
        void* const block = self().try_allocate(layout_of<T>());
        return block == nullptr ? nullptr : construct<T>(block, std::forward<Args>(args)...);
    }

    /// Makes a `T` whose destructor runs at the next `reset` or `release`, at a `rewind` to an
    /// older mark, or in the destructor of the arena. The newest object is destroyed first. Uses 24
    /// bytes next to the object, unless the object's destructor is trivial.
    ///
    ///     auto& file = scratch.own<std::ofstream>(path);
    template <class T, class... Args>
    T& own(Args&&... args)
    {
        if constexpr (std::is_trivially_destructible_v<T>) {
            return make<T>(std::forward<Args>(args)...);
        } else {
            return *with_entry([&] { return &make<T>(std::forward<Args>(args)...); },
                               [](finalizers& list, void* entry, T& object) {
                                   list.destroy_later(entry, object);
                               });
        }
    }

    /// Runs `f()` at the next `reset` or `release`, at a `rewind` to an older mark, or in the
    /// destructor of the arena. Deferred functions and the destructors of objects made by `own` run
    /// in reverse order, newest first.
    ///
    ///     scratch.defer([&] { log << "request done\n"; });
    template <std::invocable F>
    void defer(F f)
    {
        with_entry([&] { return &make<F>(std::move(f)); },
                   [](finalizers& list, void* entry, F& kept) { list.call_later(entry, kept); });
    }

    /// Makes an array of `count` value-initialised objects, whose destructors will not run.
    ///
    ///     std::span<int> const zeros = scratch.make_array<int>(100);
    template <class T>
    std::span<T> make_array(std::size_t count)
    {
        auto* const first = static_cast<T*>(self().allocate(layout_of<T>(count)));
        undo unless_made([&] { self().deallocate(first, layout_of<T>(count)); });
        std::uninitialized_value_construct_n(first, count);
        unless_made.keep();
        return {first, count};
    }

    /// Copies the characters into the arena.
    ///
    ///     std::string_view const kept = scratch.copy(line);
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
    T* construct(void* block, Args&&... args)
    {
        undo unless_made([&] { self().deallocate(block, layout_of<T>()); });
        T* const object = std::construct_at(static_cast<T*>(block), std::forward<Args>(args)...);
        unless_made.keep();
        return object;
    }

    /// Makes an object and its entry in the list of finalizers. The entry is allocated before the
    /// object, so a failure leaves no object without an entry.
    template <class Make, class Register>
    auto with_entry(Make make_object, Register add) -> decltype(make_object())
    {
        void* const entry = self().allocate(finalizers::entry_layout);
        undo unless_made([&] { self().deallocate(entry, finalizers::entry_layout); });
        auto* const object = make_object();
        unless_made.keep();
        self().with_finalizers([&](finalizers& list) { add(list, entry, *object); });
        return object;
    }
};

} // namespace mallard
