// Handles of objects in an object_pool. They are called box, rc, arc and weak, and each has the
// size of a pointer.
#pragma once

#include <mallard/detail/objects/object_slot.hpp>

#include <compare>
#include <functional>

namespace mallard {

/// The only owner of an object in an object_pool, like `std::unique_ptr`. Its destructor destroys
/// the object and frees the slot.
///
///     auto order = orders.make(7);       // an object_pool<order_t>::box
///     order_t* raw = order.leak();       // now the caller has to destroy the object
///     orders.destroy(raw);               // or orders.adopt(raw), which returns a box
///
/// A box contains only the address of the object. A mask of that address gives the chunk, and the
/// chunk has the address of the pool. (If the pool has only one chunk, the slot contains that
/// address.) A box can be moved but not copied, and must not outlive its pool. Only one thread at a
/// time may use a box. If the pool is for several threads, any thread may destroy a box.
template <class T, class Pool>
class box {
public:
    using element_type = T;

    constexpr box() noexcept = default;
    constexpr box(std::nullptr_t) noexcept {} ///< an empty box
    box(box&& other) noexcept : object_(other.leak()) {}
    box& operator=(box&& other) noexcept
    {
        box(std::move(other)).swap(*this);
        return *this;
    }
    ~box() { reset(); }

    /// Destroys the object now. The box is empty afterwards.
    void reset() noexcept
    {
        if (object_ != nullptr)
            Pool::drop(leak());
    }

    /// Releases the object without destroying it. The caller has to pass the object to `destroy` or
    /// `adopt` of the pool.
    [[nodiscard]] T* leak() noexcept { return std::exchange(object_, nullptr); }

    T* get() const noexcept { return object_; }        ///< the object, or null
    T& operator*() const noexcept { return *object_; } ///< the object; the box must not be empty
    T* operator->() const noexcept { return object_; } ///< the object; the box must not be empty
    /// Returns whether the handle has an object.
    explicit operator bool() const noexcept { return object_ != nullptr; }

    /// Exchanges the objects of two boxes.
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

/// One of several owners of an object, like `std::shared_ptr`. It is called `rc`, or `arc` if the
/// pool has `counts::shared`. When the last owner is destroyed, the object is destroyed too.
///
///     auto mesh = meshes.make_rc("tree.obj");
///     auto again = mesh;                      // one more owner
///     mallard::weak watcher = mesh;           // not an owner
///
/// There is no control block, because the counts are in the slot, after the object. A handle must
/// not outlive its pool. Threads may copy and drop arcs of one object at the same time, but each
/// thread needs a separate `arc`. To copy an arc costs one atomic operation. To drop it costs one
/// too, unless it is the only handle of its object.
template <class T, class Pool>
class shared_handle {
public:
    using element_type = T;
    using box = mallard::box<T, Pool>; ///< the handle for a single owner

    constexpr shared_handle() noexcept = default;
    constexpr shared_handle(std::nullptr_t) noexcept {}          ///< an empty handle
    shared_handle(box&& only) noexcept : object_(only.leak()) {} ///< takes over the object
    shared_handle(const shared_handle& other) noexcept : object_(other.object_)
    {
        if (object_ != nullptr)
            Pool::handles_of(object_).add_strong();
    }
    shared_handle(shared_handle&& other) noexcept : object_(std::exchange(other.object_, nullptr))
    {
    }
    /// Refers to the object of `other`. If this handle was the last owner of its previous object,
    /// destroys that object.
    shared_handle& operator=(shared_handle other) noexcept
    {
        swap(other);
        return *this;
    }
    ~shared_handle() { reset(); }

    /// Drops this handle, and destroys the object if this handle was the last owner.
    void reset() noexcept
    {
        // Tested here and not in the class body. An object may have a handle to its own type as a
        // member, and in the class body that type is incomplete.
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

    /// Turns the only handle of an object into a box. If there is another handle, even a weak one,
    /// this function returns an empty box and changes nothing.
    [[nodiscard]] box try_unique() noexcept
    {
        bool const sole = object_ != nullptr && Pool::handles_of(object_).is_sole();
        return box(sole ? std::exchange(object_, nullptr) : nullptr);
    }

    /// Returns the number of owners, including this one, or 0 for an empty handle. Other threads
    /// may change the count of an `arc` at any time.
    std::size_t use_count() const noexcept
    {
        return object_ == nullptr ? 0 : Pool::handles_of(object_).strong();
    }

    T* get() const noexcept { return object_; }        ///< the object, or null
    T& operator*() const noexcept { return *object_; } ///< the object; the handle must not be empty
    T* operator->() const noexcept { return object_; } ///< the object; the handle must not be empty
    /// Returns whether the handle has an object.
    explicit operator bool() const noexcept { return object_ != nullptr; }

    /// Exchanges the objects of two handles.
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

/// Refers to an object without owning it, like `std::weak_ptr`.
///
///     mallard::weak watcher = mesh;
///     if (auto owner = watcher.lock())    // empty once the object is destroyed
///         owner->draw();
///
/// A weak handle keeps the slot in use, but does not keep the object alive. If many weak handles
/// outlive their objects, use a `slot_map` instead, whose keys keep no slot in use. A weak handle
/// must not outlive its pool.
template <class T, class Pool>
class weak {
public:
    using element_type = T;
    using strong = shared_handle<T, Pool>; ///< the handle that `lock` returns

    constexpr weak() noexcept = default;
    /// Refers to the object of `owner` without keeping it alive.
    weak(const strong& owner) noexcept : weak(owner.object_, 0) {}
    weak(const weak& other) noexcept : weak(other.object_, 0) {}
    weak(weak&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    /// Refers to the object of `other`, and drops the previous reference.
    weak& operator=(weak other) noexcept
    {
        swap(other);
        return *this;
    }
    ~weak() { reset(); }

    /// Drops this handle, and frees the slot if this was the last handle of a destroyed object.
    void reset() noexcept
    {
        if (object_ == nullptr)
            return;
        T* const object = std::exchange(object_, nullptr);
        if (Pool::handles_of(object).drop_weak())
            Pool::free_slot(object);
    }

    /// Returns an owner of the object, or an empty handle if the object was destroyed.
    [[nodiscard]] strong lock() const noexcept
    {
        bool const lives = object_ != nullptr && Pool::handles_of(object_).lock();
        return strong(lives ? object_ : nullptr);
    }
    /// Returns whether `lock` would return an empty handle. With an `arc`, another thread may
    /// destroy the object just after this function has returned false.
    bool expired() const noexcept
    {
        return object_ == nullptr || !Pool::handles_of(object_).is_alive();
    }

    /// Exchanges the objects of two handles.
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

/// Deduces the type of a weak handle from the type of an owner.
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
