// General allocators: glibc, and mallocs from packages of Debian. Each library is opened separately
// by dlopen, so that all of them can be in one process.
#pragma once

#include <bench/harness.hpp>

#include <cstddef>
#include <cstdlib>
#include <string>

namespace mallard::bench {

/// Pointers to a malloc and its free. (Calling through a pointer costs as much as a normal call to
/// a shared library, through the PLT.)
struct heap_functions {
    void* (*allocate)(std::size_t) = nullptr;
    void (*release)(void*) = nullptr;
    void* library = nullptr;
};

struct heap_library {
    const char* file;
    const char* package;
    std::string (*version)(void* library);
};

/// Opens the library `which`, whose symbols stay separate from the symbols of other libraries.
/// Throws `cannot_run` if the library is missing.
heap_functions load_heap(heap_library const& which);

std::string mimalloc_version(void* library);
std::string jemalloc_version(void* library);
std::string gperftools_version(void* library);
std::string glibc_version();

struct glibc_tag {
    static std::string name() { return "glibc-" + glibc_version(); }
    static heap_functions load() { return {&std::malloc, &std::free, nullptr}; }
};

/// Returns the name of a library with its version, such as "mimalloc-2.0.9". Returns only
/// "mimalloc" if the library is not installed.
std::string heap_name(const char* plain, heap_library const& which);

struct mimalloc_tag {
    static constexpr heap_library library{"libmimalloc.so.2", "libmimalloc2.0", mimalloc_version};
    static std::string name() { return heap_name("mimalloc", library); }
    static heap_functions load() { return load_heap(library); }
};
struct jemalloc_tag {
    static constexpr heap_library library{"libjemalloc.so.2", "libjemalloc2", jemalloc_version};
    static std::string name() { return heap_name("jemalloc", library); }
    static heap_functions load() { return load_heap(library); }
};
struct gperftools_tag {
    static constexpr heap_library library{"libtcmalloc_minimal.so.4", "libtcmalloc-minimal4",
                                          gperftools_version};
    static std::string name() { return heap_name("gperftools", library); }
    static heap_functions load() { return load_heap(library); }
};

/// Allocates blocks of any size from one general allocator.
template <class Tag>
class heap {
public:
    static std::string name() { return Tag::name(); }

    explicit heap(std::size_t = 0)
    {
        if (functions_.allocate == nullptr)
            functions_ = Tag::load();
    }

    void* allocate(std::size_t bytes, std::size_t = 16) { return functions_.allocate(bytes); }
    void deallocate(void* block, std::size_t, std::size_t = 16) { functions_.release(block); }

private:
    static inline heap_functions functions_;
};

/// Allocates blocks of one size from one general allocator, as a program without a pool does.
template <class Tag>
struct heap_blocks {
    template <std::size_t Bytes>
    class of : heap<Tag> {
    public:
        static constexpr bool is_pool = false;
        using heap<Tag>::name;
        using heap<Tag>::heap;

        void* allocate() { return heap<Tag>::allocate(Bytes); }
        void deallocate(void* block) { heap<Tag>::deallocate(block, Bytes); }
    };
};

} // namespace mallard::bench
