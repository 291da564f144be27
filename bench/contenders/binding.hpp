// Connects standard containers with contenders. A container uses the allocator of the contender's
// library if there is one, and otherwise `contender_allocator`.
#pragma once

#include <cstddef>

namespace mallard::bench {

/// A standard allocator that calls a contender. It holds one pointer, and the compiler can inline
/// its calls.
template <class T, class C>
class contender_allocator {
public:
    using value_type = T;

    explicit contender_allocator(C& from) noexcept : from_(&from) {}
    template <class U>
    contender_allocator(contender_allocator<U, C> const& other) noexcept : from_(other.from())
    {
    }

    T* allocate(std::size_t count)
    {
        return static_cast<T*>(from_->allocate(count * sizeof(T), alignof(T)));
    }
    void deallocate(T* block, std::size_t count)
    {
        from_->deallocate(block, count * sizeof(T), alignof(T));
    }
    C* from() const noexcept { return from_; }

    template <class U>
    bool operator==(contender_allocator<U, C> const& other) const noexcept
    {
        return from_ == other.from();
    }

private:
    C* from_;
};

template <class T, class C>
auto allocator_for(C& from)
{
    if constexpr (requires { from.template allocator<T>(); })
        return from.template allocator<T>();
    else
        return contender_allocator<T, C>(from);
}

} // namespace mallard::bench
