// A pool that makes and destroys objects of one type, and returns handles to them.
#pragma once

#include <mallard/detail/base/fatal_objects.hpp>
#include <mallard/detail/base/undo.hpp>
#include <mallard/detail/objects/object_slot.hpp>
#include <mallard/handles.hpp>
#include <mallard/pool.hpp>

#include <concepts>

namespace mallard {

/// Options of `object_pool`.
///
///     mallard::object_pool<order, mallard::default_heap,
///                          mallard::object_pool_options{.checks = mallard::check::on}> orders;
struct object_pool_options {
    mallard::counts counts = mallard::counts::none; ///< reference counts, which `rc`, `arc` and
                                                    ///< `weak` need
    /// This member and those below mean the same as in `pool_options`. The growth must not be
    /// `at_run_time`.
    std::size_t chunk = std::size_t{1} << 16;
    growth grow{.first = std::size_t{1} << 16}; ///< the sizes of the chunk requests
    sync threads = sync::none;                  ///< needs <mallard/sync.hpp> if it is not `none`
    reuse order = reuse::ordered;               ///< which free slot is used next
    std::size_t cached_bytes = std::size_t{1} << 18; ///< maximum bytes of the slots in a magazine
    check checks = check::off; ///< verify calls, and mark free slots for Valgrind

    /// Returns the options for the pool of slots. Each slot has `bytes` bytes at a multiple of
    /// `align`.
    constexpr pool_options of_slots(std::size_t bytes, std::size_t align) const noexcept
    {
        return {.block = bytes,
                .align = align,
                .chunk = chunk,
                .grow = grow,
                .threads = threads,
                .order = order,
                .cached_bytes = cached_bytes,
                .checks = checks,
                .owned = true};
    }
};

/// The default hooks of an `object_pool`, which have no functions. Hooks are an object with one or
/// both of these functions, which the pool calls for each object:
///
///     void acquired(T& object);          // after the constructor
///     void released(T& object) noexcept; // before the destructor
///
/// If `acquired` throws, the object is destroyed. The thread that makes or destroys the object
/// calls the hooks, without holding a lock.
struct no_hooks {};

// clang-format off
/// Hooks that are called after an object is constructed.
template <class H, class T>
concept has_acquired = requires(H& hooks, T& object) { hooks.acquired(object); };

/// Hooks that are called before an object is destroyed.
template <class H, class T>
concept has_released = requires(H& hooks, T& object) { hooks.released(object); };

/// Hooks that have no `acquired`, or whose `acquired` does not throw.
template <class H, class T>
concept has_no_throwing_acquired = !has_acquired<H, T> || requires(H& hooks, T& object) {
    { hooks.acquired(object) } noexcept;
};

/// Hooks with at least one of the two functions, or `no_hooks`. If the only function of the hooks
/// has a misspelt name, the program does not compile.
template <class H, class T>
concept hooks_for = std::same_as<H, no_hooks> || has_acquired<H, T> || has_released<H, T>;
// clang-format on

/// An argument of `clear` and `release`, which then free the objects without calling destructors.
struct wink_out_t {};
inline constexpr wink_out_t wink_out{}; ///< the argument for `clear` and `release`

/// Makes objects of type `T` in the blocks of a pool. The destructor of the pool destroys the
/// remaining objects.
///
///     mallard::object_pool<order> orders;
///     auto first = orders.make(7, 99.5); // a box: destroys the order at its end
///     order* raw = orders.make(8, 99.0).leak();
///     orders.destroy(raw);
///
///     using meshes = mallard::object_pool<mesh, mallard::default_heap,
///                                         mallard::object_pool_options{.counts = counts::local}>;
///
/// Chunks, growth, order of reuse and thread rules are as in `pool`. A pool for several threads
/// needs <mallard/sync.hpp>. When memory is exhausted, `make` throws what the source throws, or
/// `std::bad_alloc`; `try_make` returns an empty handle. If a constructor throws, both functions
/// free the slot and pass the exception on. `T` may have any size and alignment, but must not be
/// const.
///
/// A slot has the size of its object. With `counts`, it has 8 bytes more, and if the growth rule
/// allows only one chunk request, 8 bytes more for the address of the pool. The sum is rounded up
/// to a multiple of alignof(T).
///
/// Handles must not outlive the pool. Objects may hold handles to each other. When `clear`,
/// `release` or the destructor of the pool destroys all objects, the order is unspecified. During
/// that time, the destructor of an object must not call the pool. The destructor may use another
/// object only if `lock` of a weak handle returns that object, because objects may be destroyed
/// already. Destructors and hooks never run under a lock.
///
/// With `check::on`, `destroy` stops the process if its argument is not a live object of this pool,
/// or has other handles.
template <class T, source Source = default_heap,
          object_pool_options Options = object_pool_options{}, class Hooks = no_hooks>
class object_pool {
    static_assert(std::is_object_v<T> && !std::is_array_v<T> &&
                      std::same_as<T, std::remove_cv_t<T>>,
                  "the type of the objects of an object_pool must not be an array or const");
    static_assert(hooks_for<Hooks, T>,
                  "the hooks of an object_pool need acquired(T&) and released(T&)");
    static_assert(
        Options.counts != counts::shared || Options.threads != sync::none,
        "any thread may destroy an arc, so the object_pool needs a threading mode such as "
        ".threads = sync::thread_cached");

    static constexpr bool checks_on = Options.checks == check::on;
    static constexpr bool counted = Options.counts != counts::none;
    // A handle stores only the address of its object. A mask of the address gives the chunk, and
    // the header of the chunk has the address of the pool. If a pool has only one chunk, that chunk
    // may have any address, so each slot contains the address of the pool.
    static constexpr bool pool_in_slot = Options.grow.is_single();
    using slot = object_slot<T, Options.counts, pool_in_slot>;
    using slots = pool<Source, Options.of_slots(sizeof(slot), alignof(slot))>;
    static_assert(slots::knows_owner == !pool_in_slot);

    static constexpr bool is_winkable =
        std::is_trivially_destructible_v<T> && !has_released<Hooks, T>;
    // g++ 11 requires this definition in front of the functions that use it.
    template <class... Args>
    static constexpr bool is_nothrow =
        std::is_nothrow_constructible_v<T, Args...> && has_no_throwing_acquired<Hooks, T>;

public:
    using value_type = T;
    /// The only handle of an object. Its destructor destroys the object.
    using box = mallard::box<T, object_pool>;
    /// A reference-counted handle for one thread at a time. Needs `counts::local`.
    using rc = shared_handle<T, object_pool>;
    /// A reference-counted handle for any thread. Needs `counts::shared`.
    using arc = shared_handle<T, object_pool>;
    using weak = mallard::weak<T, object_pool>; ///< a handle that does not keep the object alive
    /// The kind of reference-counted handles that the pool has.
    static constexpr mallard::counts shares = Options.counts;

    constexpr object_pool() noexcept
        requires std::default_initializable<Source> && std::default_initializable<Hooks>
    {
        set_owner(this);
    }
    /// Makes a pool over `from`. `rule` computes the sizes of chunk requests; if it is null, the
    /// growth rule in `Options` does.
    constexpr explicit object_pool(Source from, growth_function rule = nullptr,
                                   Hooks hooks = Hooks()) noexcept
        : slots_(std::move(from), rule), hooks_(std::move(hooks))
    {
        set_owner(this);
    }
    /// Makes a pool with hooks, whose source is default-constructed.
    constexpr explicit object_pool(Hooks hooks) noexcept
        requires(!std::same_as<Hooks, no_hooks> && std::default_initializable<Source>)
        : hooks_(std::move(hooks))
    {
        set_owner(this);
    }

    /// Moves the objects. The moved-from pool is empty and usable, and handles find the new pool.
    /// O(chunks), or O(objects) if the growth rule allows only one chunk request.
    object_pool(object_pool&& other) noexcept
        requires std::move_constructible<slots>
        : slots_(std::move(other.slots_)), hooks_(std::move(other.hooks_))
    {
        set_owner(this);
    }
    object_pool& operator=(object_pool&& other) noexcept
        requires std::movable<slots>
    {
        return replace_by_move(*this, std::move(other));
    }
    ~object_pool() { release(); }

    /// Makes an object from `args`, and returns a box that owns the object.
    template <class... Args>
        requires std::constructible_from<T, Args...>
    [[nodiscard]] box make(Args&&... args)
    {
        return box(make_object<true>(std::forward<Args>(args)...));
    }
    /// Like `make`, but returns an empty box if there is no memory.
    template <class... Args>
        requires std::constructible_from<T, Args...>
    [[nodiscard]] box try_make(Args&&... args) noexcept(is_nothrow<Args...>)
    {
        return box(make_object<false>(std::forward<Args>(args)...));
    }

    /// Makes an object and returns an `rc`, a handle for one thread. Needs `counts::local`.
    template <class... Args>
        requires std::constructible_from<T, Args...>
    [[nodiscard]] rc make_rc(Args&&... args)
        requires(Options.counts == counts::local)
    {
        return make(std::forward<Args>(args)...);
    }
    /// Like `make_rc`, but returns an empty handle if there is no memory.
    template <class... Args>
        requires std::constructible_from<T, Args...>
    [[nodiscard]] rc try_make_rc(Args&&... args) noexcept(is_nothrow<Args...>)
        requires(Options.counts == counts::local)
    {
        return try_make(std::forward<Args>(args)...);
    }
    /// Makes an object and returns an `arc`, a handle for any thread. Needs `counts::shared`.
    template <class... Args>
        requires std::constructible_from<T, Args...>
    [[nodiscard]] arc make_arc(Args&&... args)
        requires(Options.counts == counts::shared)
    {
        return make(std::forward<Args>(args)...);
    }
    /// Like `make_arc`, but returns an empty handle if there is no memory.
    template <class... Args>
        requires std::constructible_from<T, Args...>
    [[nodiscard]] arc try_make_arc(Args&&... args) noexcept(is_nothrow<Args...>)
        requires(Options.counts == counts::shared)
    {
        return try_make(std::forward<Args>(args)...);
    }

    /// Destroys an object that `leak` released, and frees its slot.
    void destroy(T* object) noexcept
    {
        if constexpr (checks_on)
            check_sole(object);
        destroy_object(object);
        slots_.deallocate(object);
    }

    /// Makes a box for an object that `leak` released.
    [[nodiscard]] box adopt(T* leaked) noexcept { return box(leaked); }

    /// Returns one more owner of an object that an rc or arc owns, like `shared_from_this`. Do not
    /// call this function in a constructor or destructor, nor for an object that a box owns. The
    /// destructor of that box would destroy the object although it has another owner, or with
    /// `check::on` stop the process.
    ///
    ///     void node::watch(nodes_type& nodes) { watchers.push_back(nodes.share(*this)); }
    [[nodiscard]] shared_handle<T, object_pool> share(T& object) noexcept
        requires counted
    {
        T* const address = std::addressof(object);
        handles_of(address).add_strong();
        return shared_handle<T, object_pool>(address);
    }

    /// Fills `out` with objects that are made from the same arguments. The caller has to destroy
    /// each object. If this function throws, no object was made.
    ///
    ///     std::array<order*, 16> some;
    ///     orders.make_batch(some, 7, 99.5);
    ///     orders.destroy_batch(some);
    template <class... Args>
        requires std::constructible_from<T, Args&...>
    void make_batch(std::span<T*> out, Args&&... args)
    {
        make_all<true>(out, args...);
    }
    /// Like `make_batch`, but returns false, and makes no object, if there is no memory.
    template <class... Args>
        requires std::constructible_from<T, Args&...>
    [[nodiscard]] bool try_make_batch(std::span<T*> out,
                                      Args&&... args) noexcept(is_nothrow<Args&...>)
    {
        return make_all<false>(out, args...);
    }
    /// Destroys all of `objects`, which this pool made.
    void destroy_batch(std::span<T* const> objects) noexcept
    {
        for (T* const object : objects)
            destroy(object);
    }

    /// Calls `f(T&)` for each object, in address order. `f` may destroy its argument, unless the
    /// destructor of that object destroys other objects. O(objects). The rules of `pool::for_each`
    /// apply.
    template <std::invocable<T&> F>
    void for_each(F f)
    {
        for_each_slot([&f](slot& s) {
            if (s.handles.is_alive())
                f(*s.get());
        });
    }

    /// Destroys all objects and keeps the memory. Weak handles may be left. From now on, their
    /// `lock` returns an empty handle, and their slots stay in use. No other handle may be left,
    /// except inside objects of the pool.
    void clear() noexcept
    {
        destroy_all();
        if constexpr (!counted)
            slots_.reset();
        else
            for_each_slot([this](slot& s) {
                if (s.handles.finish_end())
                    slots_.deallocate(&s);
            });
        set_owner(this);
    }
    /// Frees all objects without calling destructors or hooks, and keeps the memory. No handle may
    /// be left, not even a weak one.
    void clear(wink_out_t) noexcept { slots_.reset(); }

    /// Destroys all objects and returns all memory to the source. No handle may be left, not even a
    /// weak one.
    void release() noexcept
    {
        destroy_all();
        release(wink_out);
        set_owner(this);
    }
    /// Returns all memory to the source without calling destructors or hooks. No handle may be
    /// left, not even a weak one.
    void release(wink_out_t) noexcept { slots_.release(); }

    /// Returns idle chunks to the source, except for `keep` bytes (see `pool::trim`).
    void trim(std::size_t keep = 0) noexcept { slots_.trim(keep); }

    /// Returns whether `p` points into a chunk of the pool.
    [[nodiscard]] bool owns(const T* p) const noexcept { return slots_.owns(p); }
    /// Returns whether `p` is the first byte of a slot in use, another address in a chunk, or
    /// outside all chunks. See `pool::classify`.
    [[nodiscard]] validity classify(const T* p) const noexcept { return slots_.classify(p); }
    /// Returns statistics of the slots. A destroyed object to which a weak handle refers counts as
    /// in use.
    [[nodiscard]] statistics stats() const noexcept { return slots_.stats(); }

    /// Returns how many bytes of the source are enough for `count` objects, in a pool of one chunk.
    /// The result is the same for every argument of `growth::none`:
    ///
    ///     constexpr std::size_t bytes = object_pool<order, null, object_pool_options{
    ///                                       .grow = growth::none(1)}>::bytes_for(100);
    static constexpr std::size_t bytes_for(std::size_t count) noexcept
        requires pool_in_slot
    {
        return slots::bytes_for(count);
    }

    Source& upstream() noexcept { return slots_.upstream(); } ///< the source
    const Source& upstream() const noexcept { return slots_.upstream(); }
    Hooks& hooks() noexcept { return hooks_; } ///< the hooks

    // --- Functions for handles. A handle stores only the address of its object.

    /// Returns the pool of an object, or null while the pool destroys all of its objects.
    static object_pool* owner_of(T* object) noexcept
    {
        if constexpr (pool_in_slot)
            return static_cast<object_pool*>(slot::of(object).owner);
        else
            return static_cast<object_pool*>(slots::owner_of(object));
    }

    /// Destroys the object and frees its slot. Does nothing while the pool itself destroys all
    /// objects, because `owner_of` then returns null.
    static void drop(T* object) noexcept
    {
        if (object_pool* const pool = owner_of(object); pool != nullptr) [[likely]]
            pool->destroy(object);
    }
    /// Destroys an object whose last owner was dropped. Frees the slot unless a weak handle is
    /// left. If `sole` is true, no weak handle is left.
    static void drop_last(T* object, bool sole) noexcept
        requires counted
    {
        object_pool* const pool = owner_of(object);
        if constexpr (checks_on)
            pool->check_live(object);
        pool->destroy_object(object);
        if (sole || handles_of(object).drop_weak())
            pool->slots_.deallocate(object);
    }
    /// Frees the slot of a destroyed object, after its last weak handle was dropped.
    static void free_slot(T* object) noexcept
        requires counted
    {
        owner_of(object)->slots_.deallocate(object);
    }
    /// Returns the reference counts of an object.
    static auto& handles_of(T* object) noexcept { return slot::of(object).handles; }

private:
    /// Sets the pool to which all objects belong.
    constexpr void set_owner(object_pool* owner) noexcept
    {
        if constexpr (!pool_in_slot)
            slots_.set_owner(owner);
        else if (!std::is_constant_evaluated()) // in a constant expression, the pool is empty
            for_each_slot([owner](slot& s) { s.owner = owner; });
    }

    /// Calls `f(slot)` for each slot in use, in address order. `f` may free its argument.
    template <class F>
    void for_each_slot(F f)
    {
        slots_.for_each([&f](void* block) { f(*static_cast<slot*>(block)); });
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

    /// Constructs an object in a new slot. If the constructor or a hook throws, the slot is free
    /// again.
    template <class... Args>
    [[gnu::always_inline]] T* make_at(void* block, Args&&... args)
    {
        undo free_slot_again([this, block] { slots_.deallocate(block); });
        auto* const s = static_cast<slot*>(block);
        T* const object = std::construct_at(s->get(), std::forward<Args>(args)...);
        if constexpr (counted)
            std::construct_at(&s->handles);
        if constexpr (pool_in_slot)
            s->owner = this;
        if constexpr (has_acquired<Hooks, T>) {
            undo destroy_again([object] { std::destroy_at(object); });
            hooks_.acquired(*object);
            destroy_again.keep();
        }
        free_slot_again.keep();
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
        if constexpr (has_released<Hooks, T>)
            hooks_.released(*object);
        std::destroy_at(object);
        poison<checks_on>(object, slot::object_bytes()); // weak handles may keep the slot for long
    }

    void destroy_all() noexcept
    {
        if constexpr (counted || !is_winkable) {
            if constexpr (counted)
                for_each_slot([](slot& s) { s.handles.begin_end(); });
            set_owner(nullptr);
            for_each_slot([this](slot& s) {
                if (s.handles.die_at_end())
                    destroy_object(s.get());
            });
        }
    }

    void check_live(T* object) noexcept
    {
        if (slots_.classify(object) != validity::valid)
            slots_.deallocate(object); // stops the process with a message
    }
    void check_sole(T* object) noexcept
    {
        check_live(object);
        if (!handles_of(object).is_alive()) // a weak handle keeps the slot of a destroyed object
            fatal_double_free(object, sizeof(slot));
        if (!handles_of(object).is_sole())
            fatal_shared_destroy(object);
    }

    // A slot is in use while it has an object, or a destroyed object with a weak handle (see
    // `handle_counts`).
    slots slots_;
    [[no_unique_address]] Hooks hooks_{};
};

/// An object_pool whose shared handles are for one thread.
///
///     mallard::rc_pool<mesh> meshes;
///     mallard::rc<mesh> tree = meshes.make_rc("tree.obj");
template <class T, source Source = default_heap>
using rc_pool = object_pool<T, Source, object_pool_options{.counts = counts::local}>;

/// An object_pool whose shared handles are for any thread. Needs <mallard/sync.hpp>.
///
///     mallard::arc_pool<session> sessions;
///     mallard::arc<session> current = sessions.make_arc(socket);
template <class T, source Source = default_heap>
using arc_pool =
    object_pool<T, Source,
                object_pool_options{.counts = counts::shared, .threads = sync::thread_cached}>;

// Short names for the handles of these pools. `T` may be incomplete, so a class can have members of
// these types that refer to objects of the same class.
template <class T, class Pool = object_pool<T>>
class box;
template <class T, class Pool = rc_pool<T>>
class weak;
/// A shared handle of one thread.
template <class T, class Pool = rc_pool<T>>
using rc = shared_handle<T, Pool>;
/// A shared handle of any thread.
template <class T, class Pool = arc_pool<T>>
using arc = shared_handle<T, Pool>;

} // namespace mallard
