// Heap objects that some mallocs have: mallard::heap, and the heaps of mimalloc. Each library is
// opened separately by dlopen.
#pragma once

#include <bench/contenders/heaps.hpp>
#include <bench/preload/contenders.hpp>

#include <string>

namespace mallard::bench {

struct heap_calls {
    void* (*make)() = nullptr;
    void* (*allocate)(void* heap, std::size_t bytes) = nullptr;
    void (*destroy)(void* heap) = nullptr;
};

/// Loads the functions with these names from the library.
heap_calls load_heap_calls(heap_library const& which, const char* make, const char* allocate,
                           const char* destroy);

struct debian_mimalloc {
    static std::string name() { return mimalloc_tag::name() + "/heap"; }
    static heap_calls load()
    {
        return load_heap_calls(mimalloc_tag::library, "mi_heap_new", "mi_heap_malloc",
                               "mi_heap_destroy");
    }
};

struct crate_mimalloc {
    static std::string name() { return "mimalloc-3.6.0/heap"; }
    static heap_calls load()
    {
        static std::string const file = program_folder() + "/peers/release/libpeer_mimalloc.so";
        return load_heap_calls({file.c_str(), "cargo", mimalloc_version}, "peer_heap_new",
                               "peer_heap_malloc", "peer_heap_destroy");
    }
};

template <class Which>
class heap_of_malloc {
public:
    static std::string name() { return Which::name(); }

    heap_of_malloc() : heap_(calls().make()) {}
    heap_of_malloc(const heap_of_malloc&) = delete;
    heap_of_malloc& operator=(const heap_of_malloc&) = delete;
    ~heap_of_malloc() { calls().destroy(heap_); }

    void* allocate(std::size_t bytes) { return calls().allocate(heap_, bytes); }

private:
    static heap_calls const& calls()
    {
        static heap_calls const loaded = Which::load();
        return loaded;
    }

    void* heap_;
};

} // namespace mallard::bench
