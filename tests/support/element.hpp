// Elements that have a number, count their objects, and throw when a test requests it.
#pragma once

#include "require.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace mallard::testing {

/// A move-only element. It verifies that no other object overwrites its bytes while it lives.
class element {
public:
    static inline std::size_t live = 0;
    /// Which construction from now on throws: 1 means the next one, and 0 means none.
    static inline std::size_t throw_in = 0;

    explicit element(std::uint64_t number) : number_(number)
    {
        maybe_throw();
        live += 1;
    }
    element(element&& other) : number_(other.number_)
    {
        maybe_throw();
        other.number_ = moved;
        live += 1;
    }
    element& operator=(element&&) = delete;
    ~element()
    {
        require(self_ == this, "an element is destroyed where it was made, and once");
        self_ = nullptr;
        live -= 1;
    }
    void operator&() const = delete; // containers must use std::addressof

    std::uint64_t number() const
    {
        require(self_ == this, "an element is alive");
        return number_;
    }

private:
    static constexpr std::uint64_t moved = ~std::uint64_t{0};

    static void maybe_throw()
    {
        if (throw_in != 0 && --throw_in == 0)
            throw 1;
    }

    std::uint64_t number_;
    element* self_ = this;
};

} // namespace mallard::testing
