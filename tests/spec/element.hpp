// Objects that record their destruction.
#pragma once

#include <cstddef>

namespace mallard::testing::spec {

/// Counters of all elements since the current allocator was constructed.
struct element_book {
    std::size_t dropped = 0;
    std::size_t last = 0; // the value of the element that was destroyed last
    bool throws = false;  // whether the next constructor throws
};
inline element_book elements;

struct element_refused {};

inline void begin_element()
{
    if (elements.throws)
        throw element_refused();
}
inline void end_element(std::size_t value)
{
    elements.dropped += 1;
    elements.last = value;
}

struct plain_element {
    std::size_t value;

    explicit plain_element(std::size_t v) : value(v) { begin_element(); }
    plain_element(plain_element&& other) noexcept : value(other.value), moved(other.moved)
    {
        other.moved = true;
    }
    ~plain_element()
    {
        if (!moved)
            end_element(value);
        value = ~value;
    }

private:
    bool moved = false;
};

/// An empty object.
struct empty_element {
    explicit empty_element(std::size_t) { begin_element(); }
    empty_element(empty_element&&) = delete;
    ~empty_element() { end_element(0); }
};

struct alignas(4096) aligned_element {
    std::size_t value;

    explicit aligned_element(std::size_t v) : value(v) { begin_element(); }
    aligned_element(aligned_element&&) = delete;
    ~aligned_element() { end_element(value); }
};

template <class T>
bool is_of_value(const T& object, std::size_t value)
{
    if constexpr (requires { object.value; })
        return object.value == value;
    else
        return value == 0;
}

} // namespace mallard::testing::spec
