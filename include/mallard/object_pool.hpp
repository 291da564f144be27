// A pool that makes and destroys objects of one type, and gives handles to them.
#pragma once

#include <mallard/detail/base/undo.hpp>
#include <mallard/detail/objects/hooks.hpp>
#include <mallard/detail/objects/slot_pool.hpp>
#include <mallard/handles.hpp>

namespace mallard {

/// Says that objects go without their destructors.
struct wink_out_t {};
inline constexpr wink_out_t wink_out{};

/// Makes objects of `T` in the blocks of a pool, and destroys what is left of them at
/// its own end.
///
///     mallard::object_pool<order> orders;
///     auto first = orders.make(7, 99.5); // a box: destroys at its end
///     order* raw = orders.make(8, 99.0).leak();
///     orders.destroy(raw);
///
///     using meshes = mallard::object_pool<mesh, mallard::default_heap,
///                                         mallard::object_pool_options{.counts = counts::local}>;
///
/// All that `pool` says holds: chunks of 64 KiB (or what large objects need), growth,
/// order of reuse, threads. `make` throws what the source throws or else
/// `std::bad_alloc`, and `try_make` gives an empty handle; when a constructor throws,
/// both pass that on and the slot is free again. `T` may be of any size and alignment,
/// but not const.
///
/// Bytes beside an object: 8 with `counts`; 8 where the growth has one step, since
/// handles then find the pool by it; else none. The sum is a multiple of alignof(T).
///
/// Handles must not outlive the pool. Objects may hold handles of each other: where
/// all are destroyed at once, each is destroyed once, in no order to rely on. A
/// destructor then finds with `lock` those that still live; it must neither look at
/// others nor call the pool itself. Destructors and hooks never run under a lock.
///
/// `check::on` stops at a `destroy` of what is not an object of this pool, or is dead,
/// or is shared.
template <class T, source Source = default_heap,
          object_pool_options Options = object_pool_options{}, class Hooks = no_hooks>
class object_pool {
    static_assert(std::is_object_v<T> && !std::is_array_v<T> &&
                      std::same_as<T, std::remove_cv_t<T>>,
                  "an object_pool holds objects of one type: no array, not const");
    static_assert(hooks_for<Hooks, T>, "hooks of an object_pool have acquired(T&), released(T&)");
    static_assert(Options.counts != counts::shared || Options.threads != sync::none,
                  "an arc may end in any thread: the object_pool needs a mode for that, such as "
                  ".threads = sync::thread_cached");

    static constexpr bool watched = Options.checks == check::on;
    static constexpr bool counted = Options.counts != counts::none;
    using slots = slot_pool<T, Source, Options>;
    using slot = typename slots::slot;

    static constexpr bool is_winkable =
        std::is_trivially_destructible_v<T> && !hears_of_dead<Hooks, T>;

public:
    using value_type = T;
    using box = mallard::box<T, object_pool>;
    using rc = shared_handle<T, object_pool>;
    using arc = shared_handle<T, object_pool>;
    using weak = mallard::weak<T, object_pool>;
    static constexpr mallard::counts shares = Options.counts;

    constexpr object_pool() noexcept
        requires std::default_initializable<Source> && std::default_initializable<Hooks>
    {
        slots_.lead_to(this);
    }
    constexpr explicit object_pool(Source from, growth_function rule = nullptr,
                                   Hooks hooks = Hooks()) noexcept
        : slots_(std::move(from), rule), hooks_(std::move(hooks))
    {
        slots_.lead_to(this);
    }
    constexpr explicit object_pool(Hooks hooks) noexcept
        requires(!std::same_as<Hooks, no_hooks> && std::default_initializable<Source>)
        : hooks_(std::move(hooks))
    {
        slots_.lead_to(this);
    }

    /// The moved-from pool is empty and usable; handles now lead here. O(chunks), or
    /// O(objects) where the growth has one step.
    object_pool(object_pool&& other) noexcept
        requires std::move_constructible<slots>
        : slots_(std::move(other.slots_)), hooks_(std::move(other.hooks_))
    {
        slots_.lead_to(this);
    }
    object_pool& operator=(object_pool&& other) noexcept
        requires std::movable<slots>
    {
        if (this != &other) {
            std::destroy_at(this);
            std::construct_at(this, std::move(other));
        }
        return *this;
    }
    ~object_pool() { release(); }

    template <class... Args>
        requires std::constructible_from<T, Args...>
    [[nodiscard]] box make(Args&&... args)
    {
        return box(make_object<true>(std::forward<Args>(args)...));
    }
    template <class... Args>
        requires std::constructible_from<T, Args...>
    [[nodiscard]] box try_make(Args&&... args) noexcept(is_nothrow<Args...>)
    {
        return box(make_object<false>(std::forward<Args>(args)...));
    }

    /// With `counts::local`.
    template <class... Args>
        requires std::constructible_from<T, Args...>
    [[nodiscard]] rc make_rc(Args&&... args)
        requires(Options.counts == counts::local)
    {
        return make(std::forward<Args>(args)...);
    }
    template <class... Args>
        requires std::constructible_from<T, Args...>
    [[nodiscard]] rc try_make_rc(Args&&... args) noexcept(is_nothrow<Args...>)
        requires(Options.counts == counts::local)
    {
        return try_make(std::forward<Args>(args)...);
    }
    /// With `counts::shared`.
    template <class... Args>
        requires std::constructible_from<T, Args...>
    [[nodiscard]] arc make_arc(Args&&... args)
        requires(Options.counts == counts::shared)
    {
        return make(std::forward<Args>(args)...);
    }
    template <class... Args>
        requires std::constructible_from<T, Args...>
    [[nodiscard]] arc try_make_arc(Args&&... args) noexcept(is_nothrow<Args...>)
        requires(Options.counts == counts::shared)
    {
        return try_make(std::forward<Args>(args)...);
    }

    /// Of an object that `leak` made the caller's.
    void destroy(T* object) noexcept
    {
        if constexpr (watched)
            check_sole(object);
        destroy_object(object);
        slots_.deallocate(object);
    }

    /// The other way round: a box for what was leaked.
    [[nodiscard]] box adopt(T* leaked) noexcept { return box(leaked); }

    /// One more owner of an object that rc or arc own: what `shared_from_this` does.
    /// Not for an object of a box, nor in a constructor or a destructor.
    [[nodiscard]] shared_handle<T, object_pool> share(T& object) noexcept
        requires counted
    {
        T* const address = std::addressof(object);
        handles_of(address).add_strong();
        return shared_handle<T, object_pool>(address);
    }

    /// Fills `out` with objects made of the same arguments, each the caller's to
    /// destroy, or throws and has made none.
    template <class... Args>
        requires std::constructible_from<T, Args&...>
    void make_batch(std::span<T*> out, Args&&... args)
    {
        make_all<true>(out, args...);
    }
    /// False: none was made.
    template <class... Args>
        requires std::constructible_from<T, Args&...>
    [[nodiscard]] bool try_make_batch(std::span<T*> out,
                                      Args&&... args) noexcept(is_nothrow<Args&...>)
    {
        return make_all<false>(out, args...);
    }
    void destroy_batch(std::span<T* const> objects) noexcept
    {
        for (T* const object : objects)
            destroy(object);
    }

    /// Calls `f(T&)` for each object, in address order; `f` may destroy the one it is
    /// given, unless others go with that. O(objects), under the rule of `pool::for_each`.
    template <std::invocable<T&> F>
    void for_each(F f)
    {
        slots_.for_each_slot([&f](slot& s) {
            if (s.handles.is_alive())
                f(*s.get());
        });
    }

    /// Destroys all objects and keeps the memory. Weak handles find nothing from now
    /// on, and keep their slots; no other handle may be left outside.
    void clear() noexcept
    {
        destroy_all();
        if constexpr (!counted)
            slots_.reset();
        else
            slots_.for_each_slot([this](slot& s) {
                if (s.handles.finish_end())
                    slots_.deallocate(&s);
            });
        slots_.lead_to(this);
    }
    /// The same without destructors or hooks, and no handle at all may be left.
    void clear(wink_out_t) noexcept { slots_.reset(); }

    /// Destroys all objects and gives all memory back to the source. No handle may be
    /// left, not even a weak one.
    void release() noexcept
    {
        destroy_all();
        release(wink_out);
        slots_.lead_to(this);
    }
    void release(wink_out_t) noexcept { slots_.release(); }

    /// Gives idle memory back, beyond `keep` bytes: `pool::trim`.
    void trim(std::size_t keep = 0) noexcept { slots_.trim(keep); }

    [[nodiscard]] bool owns(const T* p) const noexcept { return slots_.owns(p); }
    [[nodiscard]] validity classify(const T* p) const noexcept { return slots_.classify(p); }
    /// Of the slots: an object that is dead but watched counts.
    [[nodiscard]] statistics stats() const noexcept { return slots_.stats(); }

    /// Source bytes that surely hold `count` objects: `growth::none(1)` will do to ask.
    static constexpr std::size_t bytes_for(std::size_t count) noexcept
        requires(!slots::by_chunk)
    {
        return slots::bytes_for(count);
    }

    Source& upstream() noexcept { return slots_.upstream(); }
    const Source& upstream() const noexcept { return slots_.upstream(); }
    Hooks& hooks() noexcept { return hooks_; }

    // --- for handles, which have nothing but the address of an object

    /// The pool is found before the destructor runs, since nothing else is left after
    /// it. Null: all objects are being destroyed, this one by the pool.
    static void drop(T* object) noexcept
    {
        if (object_pool* const pool = pool_of(object); pool != nullptr) [[likely]]
            pool->destroy(object);
    }
    static void drop_last(T* object, bool sole) noexcept
        requires counted
    {
        object_pool* const pool = pool_of(object);
        if constexpr (watched)
            pool->check_live(object);
        pool->destroy_object(object);
        if (sole || handles_of(object).drop_weak())
            pool->slots_.deallocate(object);
    }
    static void free_slot(T* object) noexcept
        requires counted
    {
        pool_of(object)->slots_.deallocate(object);
    }
    static auto& handles_of(T* object) noexcept { return slot::of(object).handles; }

private:
    template <class... Args>
    static constexpr bool is_nothrow =
        std::is_nothrow_constructible_v<T, Args...> && refuses_no_new<Hooks, T>;

    static object_pool* pool_of(T* object) noexcept
    {
        return static_cast<object_pool*>(slots::owner_of(object));
    }

    template <bool Throws, class... Args>
    [[gnu::always_inline]] T* make_object(Args&&... args)
    {
        if constexpr (Throws)
            return make_at(slots_.allocate(), std::forward<Args>(args)...);
        else if (void* const block = slots_.try_allocate(); block != nullptr) [[likely]]
            return make_at(block, std::forward<Args>(args)...);
        else
            return nullptr;
    }

    /// Whatever throws, the slot is free again.
    template <class... Args>
    [[gnu::always_inline]] T* make_at(void* block, Args&&... args)
    {
        undo slot_again_free([this, block] { slots_.deallocate(block); });
        auto* const s = static_cast<slot*>(block);
        T* const object = std::construct_at(s->get(), std::forward<Args>(args)...);
        if constexpr (counted)
            std::construct_at(&s->handles);
        slots::lead_to(this, *s);
        if constexpr (hears_of_new<Hooks, T>) {
            undo object_again_gone([object] { std::destroy_at(object); });
            hooks_.acquired(*object);
            object_again_gone.keep();
        }
        slot_again_free.keep();
        return object;
    }

    template <bool Throws, class... Args>
    bool make_all(std::span<T*> out, Args&... args)
    {
        std::size_t made = 0;
        undo all([&] { destroy_batch(out.first(made)); });
        for (; made < out.size(); ++made) {
            out[made] = make_object<Throws>(args...);
            if (out[made] == nullptr)
                return false;
        }
        all.keep();
        return true;
    }

    void destroy_object(T* object) noexcept
    {
        if constexpr (hears_of_dead<Hooks, T>)
            hooks_.released(*object);
        std::destroy_at(object);
        poison<watched>(object, slot::object_bytes()); // its slot may be in use for long
    }

    void destroy_all() noexcept
    {
        if constexpr (counted || !is_winkable) {
            if constexpr (counted)
                slots_.for_each_slot([](slot& s) { s.handles.begin_end(); });
            slots_.lead_to(nullptr);
            slots_.for_each_slot([this](slot& s) {
                if (s.handles.die_at_end())
                    destroy_object(s.get());
            });
        }
    }

    void check_live(T* object) noexcept
    {
        if (slots_.classify(object) != validity::valid)
            slots_.deallocate(object); // which stops, and says why
    }
    void check_sole(T* object) noexcept
    {
        check_live(object);
        if (!handles_of(object).is_alive()) // watched by weak handles
            fatal_double_free(object, sizeof(slot));
        if (!handles_of(object).is_sole())
            fatal_shared_destroy(object);
    }

    // A slot in use, as `handle_counts` says, holds an object or is watched. Its pool
    // is what the chunk, or else the slot, says; null while all objects are destroyed.
    slots slots_;
    [[no_unique_address]] Hooks hooks_{};
};

/// Pools whose objects are shared: by one thread, by any.
template <class T, source Source = default_heap>
using rc_pool = object_pool<T, Source, object_pool_options{.counts = counts::local}>;
template <class T, source Source = default_heap>
using arc_pool =
    object_pool<T, Source,
                object_pool_options{.counts = counts::shared, .threads = sync::thread_cached}>;

/// For objects that hold handles of their own type.
template <class T, class Pool = object_pool<T>>
class box;
template <class T, class Pool = rc_pool<T>>
class weak;
template <class T, class Pool = rc_pool<T>>
using rc = shared_handle<T, Pool>;
template <class T, class Pool = arc_pool<T>>
using arc = shared_handle<T, Pool>;

} // namespace mallard
