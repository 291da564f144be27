// dies: mallard: free of ADDRESS, which is inside a block
// checked dies: mallard: free of ADDRESS, which is inside a block of "malloc"
#include "act.hpp"

int main()
{
    // The address stays in the thread's list. It is checked when the list is emptied, at the
    // thread's exit.
    auto const run = [](void*) -> void* {
        set_free(at(allocate_with_room(48), 16));
        return nullptr;
    };
    pthread_t thread;
    ::pthread_create(&thread, nullptr, run, nullptr);
    ::pthread_join(thread, nullptr);
    return say("nothing");
}
