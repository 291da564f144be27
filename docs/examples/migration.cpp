// Code of docs/guide/migrating.md, for users of other allocators. Comments show the code that it
// replaces.
#include <mallard/mallard.hpp>

#include <array>
#include <cassert>
#include <list>
#include <map>
#include <memory_resource>
#include <string>
#include <vector>

struct particle {
    float x, y;
};

// An allocator with the interface that EASTL's containers expect. All its copies take memory from
// one multipool.
class eastl_allocator {
public:
    explicit eastl_allocator(mallard::multipool<>& from, const char* name = "") noexcept
        : from_(&from), name_(name)
    {
    }
    void* allocate(std::size_t bytes, int /*flags*/ = 0) { return from_->allocate({bytes, align}); }
    void* allocate(std::size_t bytes, std::size_t wanted, std::size_t offset, int /*flags*/ = 0)
    {
        assert(wanted <= align && offset == 0); // deallocate is not told of more
        return allocate(bytes);
    }
    void deallocate(void* block, std::size_t bytes) { from_->deallocate(block, {bytes, align}); }
    const char* get_name() const { return name_; }
    void set_name(const char* name) { name_ = name; }
    friend bool operator==(const eastl_allocator& a, const eastl_allocator& b)
    {
        return a.from_ == b.from_;
    }

private:
    static constexpr std::size_t align = 16;
    mallard::multipool<>* from_;
    const char* name_;
};

void boost_pool()
{
    mallard::pool<> blocks(sizeof(particle)); // boost::pool<> blocks(sizeof(particle));
    void* const block = blocks.allocate();    // blocks.malloc()
    assert(blocks.owns(block));               // blocks.is_from(block)
    blocks.deallocate(block);                 // blocks.free(block)
    blocks.trim();                            // blocks.release_memory()

    mallard::object_pool<particle> particles;      // boost::object_pool<particle> particles;
    auto const owned = particles.make(1.0F, 2.0F); // freed with its box: one pointer
    particle* const raw = particles.make(3.0F, 4.0F).leak(); // particles.construct(3, 4)
    particles.destroy(raw);                                  // particles.destroy(raw): O(1)
    assert(owned->y == 2.0F);
}

void small_containers()
{
    // boost::container::small_vector<int, 16>, eastl::fixed_vector<int, 16>
    std::array<std::byte, 256> bytes;
    mallard::arena<> place(bytes); // takes more from the heap when the bytes are used up
    std::vector<int, mallard::allocator<int, mallard::arena<>>> numbers(place);
    numbers.reserve(16);
    numbers.push_back(1);
    assert(numbers.size() == 1);

    // eastl::fixed_list<int, 64, false>: at most 64 nodes, inside the object
    mallard::fixed_pool<sizeof(int) + 2 * sizeof(void*), 64> nodes;
    assert(nodes.owns(nodes.allocate()));
}

void foonathan()
{
    mallard::arena<> stack; // memory::memory_stack<> stack(4096);
    {
        mallard::scope const unwind(stack); // memory::memory_stack_raii_unwind unwind(stack);
        stack.make_array<char>(100);        // stack.allocate(100, 1)
    }
    mallard::multipool<> sizes; // memory::memory_pool_collection<memory::node_pool, ...> sizes;
    std::list<int, mallard::allocator<int, mallard::multipool<>>> list(sizes);
    list.push_back(1);

    // memory::memory_resource_adapter<...>
    mallard::pmr_resource<mallard::multipool<>> resource;
    std::pmr::string const text("as a memory resource of the standard", &resource);
    assert(!text.empty() && list.size() == 1);
}

void eastl()
{
    mallard::multipool<> memory;
    eastl_allocator nodes(memory, "nodes");
    void* const block = nodes.allocate(40);
    nodes.deallocate(block, 40);
    assert(nodes == eastl_allocator(memory));
}

int main()
{
    boost_pool();
    small_containers();
    foonathan();
    eastl();
}
