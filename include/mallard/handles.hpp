// Who gives an object of an object_pool back: box, rc, arc, weak. A pointer each.
#pragma once

#include <mallard/detail/objects/object_slot.hpp>

#include <compare>
#include <functional>

namespace mallard {

/// The only owner of an object: destroys it and frees its slot at its end.
///
///     auto order = orders.make(7);       // object_pool<order_t>::box
///     order_t* raw = order.leak();       // now the caller's to destroy
///     orders.destroy(raw);               // or orders.adopt(raw), a box again
///
/// `sizeof(void*)`: the pool is found from the object's address, by masking it to
/// its chunk. Moves, does not copy. Must not outlive its pool. One thread at a time;
/// any thread may end one where the pool is for several.
template <class T, class Pool>
class box {
public:
    using element_type = T;

    constexpr box() noexcept = default;
    constexpr box(std::nullptr_t) noexcept {}
    box(box&& other) noexcept : object_(other.leak()) {}
    box& operator=(box&& other) noexcept
    {
        box(std::move(other)).swap(*this);
        return *this;
    }
    ~box() { reset(); }

    /// Destroys the object now.
    void reset() noexcept
    {
        if (object_ != nullptr)
            Pool::drop(leak());
    }

    /// The object becomes the caller's.
    [[nodiscard]] T* leak() noexcept { return std::exchange(object_, nullptr); }

    T* get() const noexcept { return object_; }
    T& operator*() const noexcept { return *object_; }
    T* operator->() const noexcept { return object_; }
    explicit operator bool() const noexcept { return object_ != nullptr; }

    void swap(box& other) noexcept { std::swap(object_, other.object_); }
    friend void swap(box& a, box& b) noexcept { a.swap(b); }
    friend bool operator==(const box&, const box&) = default;
    friend auto operator<=>(const box&, const box&) = default;
    friend bool operator==(const box& a, std::nullptr_t) noexcept { return a.object_ == nullptr; }

private:
    friend Pool;
    template <class, class>
    friend class shared_handle;
    explicit box(T* object) noexcept : object_(object) {}

    T* object_ = nullptr;
};

/// One of the owners of an object, which dies with the last of them: an `rc`, or an
/// `arc` where the pool has `counts::shared`.
///
///     auto mesh = meshes.make_rc("tree.obj");
///     auto again = mesh;                      // one more owner
///     mallard::weak watcher = mesh;           // none: it sees whether the object lives
///
/// `sizeof(void*)`, and no control block: the count stands in the slot. Copies and
/// moves. Must not outlive its pool. An `arc` may be copied and dropped by threads
/// at the same time, each with a handle of its own, as `std::shared_ptr`; to copy
/// takes one atomic operation, to drop one as well, or none where it is the only handle.
template <class T, class Pool>
class shared_handle {
public:
    using element_type = T;
    using box = mallard::box<T, Pool>;

    constexpr shared_handle() noexcept = default;
    constexpr shared_handle(std::nullptr_t) noexcept {}
    shared_handle(box&& only) noexcept : object_(only.leak()) {}
    shared_handle(const shared_handle& other) noexcept : object_(other.object_)
    {
        if (object_ != nullptr)
            Pool::handles_of(object_).add_strong();
    }
    shared_handle(shared_handle&& other) noexcept : object_(std::exchange(other.object_, nullptr))
    {
    }
    shared_handle& operator=(shared_handle other) noexcept
    {
        swap(other);
        return *this;
    }
    ~shared_handle() { reset(); }

    void reset() noexcept
    {
        // Here and not above: objects may hold handles of their own type.
        static_assert(Pool::shares != counts::none,
                      "rc, arc and weak need .counts = counts::local or counts::shared in the "
                      "options of the object_pool");
        if (object_ == nullptr)
            return;
        T* const object = std::exchange(object_, nullptr);
        bool const sole = Pool::handles_of(object).is_sole();
        if (sole || Pool::handles_of(object).drop_strong())
            Pool::drop_last(object, sole);
    }

    /// A box, if this is the only handle of the object, weak ones included; else
    /// nothing has changed.
    [[nodiscard]] box try_unique() noexcept
    {
        bool const sole = object_ != nullptr && Pool::handles_of(object_).is_sole();
        return box(sole ? std::exchange(object_, nullptr) : nullptr);
    }

    /// Strong handles, this one included; a moment's picture for an `arc`.
    std::size_t use_count() const noexcept
    {
        return object_ == nullptr ? 0 : Pool::handles_of(object_).strong();
    }

    T* get() const noexcept { return object_; }
    T& operator*() const noexcept { return *object_; }
    T* operator->() const noexcept { return object_; }
    explicit operator bool() const noexcept { return object_ != nullptr; }

    void swap(shared_handle& other) noexcept { std::swap(object_, other.object_); }
    friend void swap(shared_handle& a, shared_handle& b) noexcept { a.swap(b); }
    friend bool operator==(const shared_handle&, const shared_handle&) = default;
    friend auto operator<=>(const shared_handle&, const shared_handle&) = default;
    friend bool operator==(const shared_handle& a, std::nullptr_t) noexcept
    {
        return a.object_ == nullptr;
    }

private:
    friend Pool;
    template <class, class>
    friend class weak;
    explicit shared_handle(T* object) noexcept : object_(object) {}

    T* object_ = nullptr;
};

/// Sees an object without owning it: `lock` gives an owner, or nothing once the
/// object is dead, for ever. Keeps the slot, though not the object: where many stay
/// behind, a `slot_map` and its keys hold less. `sizeof(void*)`; must not outlive
/// its pool.
template <class T, class Pool>
class weak {
public:
    using element_type = T;
    using strong = shared_handle<T, Pool>;

    constexpr weak() noexcept = default;
    weak(const strong& owner) noexcept : weak(owner.object_, 0) {}
    weak(const weak& other) noexcept : weak(other.object_, 0) {}
    weak(weak&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    weak& operator=(weak other) noexcept
    {
        swap(other);
        return *this;
    }
    ~weak() { reset(); }

    void reset() noexcept
    {
        if (object_ == nullptr)
            return;
        T* const object = std::exchange(object_, nullptr);
        if (Pool::handles_of(object).drop_weak())
            Pool::free_slot(object);
    }

    [[nodiscard]] strong lock() const noexcept
    {
        bool const lives = object_ != nullptr && Pool::handles_of(object_).lock();
        return strong(lives ? object_ : nullptr);
    }
    bool expired() const noexcept
    {
        return object_ == nullptr || !Pool::handles_of(object_).is_alive();
    }

    void swap(weak& other) noexcept { std::swap(object_, other.object_); }
    friend void swap(weak& a, weak& b) noexcept { a.swap(b); }

private:
    weak(T* object, int) noexcept : object_(object)
    {
        if (object_ != nullptr)
            Pool::handles_of(object_).add_weak();
    }

    T* object_ = nullptr;
};

template <class T, class Pool>
weak(const shared_handle<T, Pool>&) -> weak<T, Pool>;

} // namespace mallard

template <class T, class Pool>
struct std::hash<mallard::box<T, Pool>> {
    std::size_t operator()(const mallard::box<T, Pool>& h) const noexcept
    {
        return std::hash<T*>()(h.get());
    }
};
template <class T, class Pool>
struct std::hash<mallard::shared_handle<T, Pool>> {
    std::size_t operator()(const mallard::shared_handle<T, Pool>& h) const noexcept
    {
        return std::hash<T*>()(h.get());
    }
};
