// What an arena runs before it forgets: destructors registered on request.
#pragma once

#include <mallard/detail/base/bits.hpp>

#include <memory>
#include <utility>

namespace mallard {

/// A list, newest first, whose entries live in the arena beside the objects.
class finalizers {
    struct entry {
        entry* next;
        void (*run)(void*) noexcept;
        void* object;
    };

public:
    /// How far it had got: what came later is newer.
    using position = entry*;
    static constexpr layout entry_layout = layout_of<entry>();

    position newest() const noexcept { return newest_; }

    /// At `memory`, of `entry_layout`: when the time comes, destroys `object`.
    template <class T>
    void destroy_later(void* memory, T& object) noexcept
    {
        push(memory, &object, [](void* p) noexcept { std::destroy_at(static_cast<T*>(p)); });
    }

    /// When the time comes, calls `f` and destroys it.
    template <class F>
    void call_later(void* memory, F& f) noexcept
    {
        push(memory, &f, [](void* p) noexcept {
            (*static_cast<F*>(p))();
            std::destroy_at(static_cast<F*>(p));
        });
    }

    /// Runs all that is newer than `last`, the newest first.
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

} // namespace mallard
