// In render_document (render.cpp:40)
#include <memory_resource>

struct node { // the type that is made there; its pointers to other nodes own nothing
    long id = 0;
    node* next = nullptr;
};

long render_document(long id)
{
    std::pmr::monotonic_buffer_resource memory; // one for each call
    // Instead of new and std::make_unique. std::destroy_at would run the destructor; the end of
    // `memory` frees everything.
    node* const made = std::pmr::polymorphic_allocator<>(&memory).new_object<node>();
    made->id = id;
    return made->id;
}
