// The slots of an object_pool: blocks of a pool that lead to whom they belong.
#pragma once

#include <mallard/detail/objects/object_slot.hpp>
#include <mallard/pool.hpp>

namespace mallard {

template <class T, object_pool_options Options>
using slot_for = object_slot<T, Options.counts, Options.grow.is_single()>;

template <class T, source Source, object_pool_options Options>
using pool_of_slots =
    pool<Source, Options.of_slots(sizeof(slot_for<T, Options>), alignof(slot_for<T, Options>))>;

/// A handle is the address of an object, and so is all it knows. A mask makes the
/// chunk of that, whose header names the owner; but a chunk that is the only one
/// stands where its source likes, and so its slots name the owner themselves.
template <class T, source Source, object_pool_options Options>
class slot_pool : public pool_of_slots<T, Source, Options> {
    using base = pool_of_slots<T, Source, Options>;

public:
    using slot = slot_for<T, Options>;
    static constexpr bool by_chunk = base::knows_owner;
    static_assert(by_chunk != Options.grow.is_single());

    using base::base;

    /// Whom the object's slot belongs to.
    static void* owner_of(T* object) noexcept
    {
        if constexpr (by_chunk)
            return base::owner_of(object);
        else
            return slot::of(object).owner;
    }

    /// Of all slots, but for those to come where they themselves name it.
    constexpr void lead_to(void* owner) noexcept
    {
        if constexpr (by_chunk)
            base::set_owner(owner);
        else if (!std::is_constant_evaluated()) // where there are none yet
            for_each_slot([owner](slot& s) { s.owner = owner; });
    }
    static void lead_to(void* owner, [[maybe_unused]] slot& fresh) noexcept
    {
        if constexpr (!by_chunk)
            fresh.owner = owner;
    }

    /// In use, in address order; `f` may free the one it is given.
    template <class F>
    void for_each_slot(F f)
    {
        base::for_each([&f](void* block) { f(*static_cast<slot*>(block)); });
    }
};

} // namespace mallard
