// Defines the allocator that takes the place of std::allocator in a standard library's own tests:
// Mallard's allocator, over one multipool.
#pragma once

#include "default_allocator.hpp"

#include <mallard/allocator.hpp>
#include <mallard/multipool.hpp>
#include <mallard/sync.hpp>

using memory_of_tests =
    mallard::multipool<mallard::default_heap,
                       // run.py defines TESTS_HAVE_THREADS.
                       mallard::multipool_options{.threads = TESTS_HAVE_THREADS
                                                                 ? mallard::sync::mutex
                                                                 : mallard::sync::none}>;

/// Returns the multipool of all containers. It is never destroyed, because a container may be
/// static.
inline memory_of_tests& one_for_all()
{
    static auto& memory = *new memory_of_tests;
    return memory;
}

/// A `mallard::allocator` with a default constructor.
template <class T>
class std::mallard_default : public mallard::allocator<T, memory_of_tests> {
public:
    template <class U>
    struct rebind {
        using other = mallard_default<U>;
    };

    mallard_default() noexcept : mallard::allocator<T, memory_of_tests>(one_for_all()) {}
    template <class U>
    mallard_default(const mallard_default<U>&) noexcept : mallard_default()
    {
    }
    friend bool operator==(const mallard_default&, const mallard_default&) noexcept { return true; }
};
