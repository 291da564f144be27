// Has a function need_PART for each part of the headers that needs the compiled library, by
// docs/install.md. `run pkg_config` links one function at a time, as `chosen`, with the library and
// without. headers.cpp uses the header-only parts.
#include <mallard/mallard.hpp>

using namespace mallard;

extern "C" {

// Needs memory of the operating system.
void need_pages()
{
    arena<pages<>>().make<int>(7);
}

// Needs a cache for each thread.
void need_thread_cached()
{
    pool<default_heap, pool_options{.threads = sync::thread_cached}> blocks(64);
    blocks.deallocate(blocks.allocate());
}

void need_shared_arena()
{
    shared_arena<> scratch;
    static_cast<void>(scratch.allocate({100, 8}));
}

// By default, a slot map reserves pages.
void need_slot_map()
{
    slot_map<int> numbers;
    numbers.insert(7);
}

void need_shared_slot_map()
{
    shared_slot_map<int> numbers;
    numbers.insert(7);
}

// Needs the call stacks of a checked allocator.
void need_frames()
{
    checked<multipool<>, checked_options{.frames = 4}> memory;
    void* const block = memory.allocate({100, 8});
    memory.deallocate(block, {100, 8});
}

void need_guarded()
{
    guarded<multipool<>> memory;
    void* const block = memory.allocate({100, 8});
    memory.deallocate(block, {100, 8});
}

void need_protected_pages()
{
    arena<protected_pages<>> scratch;
    scratch.make<int>(7);
}

void need_file_arena()
{
    file_arena numbers;
    static_cast<void>(numbers.open("numbers"));
}

void need_shared_memory()
{
    static_cast<void>(shared_memory::anonymous(4096));
}

void need_trace_file()
{
    trace_file calls("calls.trace");
    calls.close();
}

void chosen();

} // extern "C"

int main()
{
    chosen();
}
