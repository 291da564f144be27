// In render_document (render.cpp:40)
#include <mallard/arena.hpp>

// For the trial: mallard::guarded<mallard::arena<>> of <mallard/debug/guarded.hpp>
struct node { // the type that is made there; its pointers to other nodes own nothing
    long id = 0;
    node* next = nullptr;
};

long render_document(long id)
{
    mallard::arena<> memory; // one for each call
    // Instead of new and std::make_unique. Never destroyed: the end of `memory` frees everything.
    node& made = memory.make<node>();
    made.id = id;
    return made.id;
}
