// Sources, from which allocators take chunks.
#include <mallard/arena.hpp>
#include <mallard/pool.hpp>

#include <array>
#include <cassert>

int main()
{
    std::pmr::memory_resource* const upstream = std::pmr::new_delete_resource();
    {
        mallard::arena<> from_the_heap;                         // default_heap: operator new
        mallard::arena<mallard::buffer<4096>> inside_itself;    // no heap at all
        mallard::arena<mallard::pmr_source> from_pmr(upstream); // any std::pmr::memory_resource

        std::array<std::byte, 1024> bytes;
        mallard::arena<mallard::borrowed> of_the_caller{mallard::borrowed(bytes)};
        assert(of_the_caller.allocate({16, 8}) >= bytes.data());
        assert(inside_itself.try_allocate({8192, 8}) == nullptr);
        assert(from_the_heap.try_allocate({8192, 8}) != nullptr);
        assert(from_pmr.try_allocate({8192, 8}) != nullptr);
    }
    {
        // An allocator owns a source that is a member by value. `ref` borrows a source that other
        // allocators use too.
        mallard::arena<> shared;
        mallard::pool<mallard::ref<mallard::arena<>>> small(16, 0, shared);
        mallard::pool<mallard::ref<mallard::arena<>>> large(64, 0, shared);
        void* const a = small.allocate();
        void* const b = large.allocate();
        assert(a != b && shared.stats().bytes_live >= small.stats().bytes_taken);
    }
    {
        // Uses the bytes on the stack first, then the heap. If the source is `null`, uses only the
        // bytes on the stack.
        std::array<std::byte, 512> bytes;
        mallard::arena<> spills(bytes);
        mallard::arena<mallard::null> fixed(std::span<std::byte>(bytes).first(0));
        assert(spills.allocate({400, 8}) == bytes.data());
        assert(spills.try_allocate({400, 8}) != nullptr);
        assert(fixed.try_allocate({1, 1}) == nullptr);
    }
}
