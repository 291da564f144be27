// dies: mallard: write to ADDRESS, past the end of a block of "orders"
#include <mallard/debug/guarded.hpp>
#include <mallard/multipool.hpp>

// AddressSanitizer does not check this function: otherwise it would stop the program at the write.
[[gnu::no_sanitize_address]] void write(volatile char* p)
{
    *p = 1;
}

int main()
{
    mallard::guarded<mallard::multipool<>> blocks("orders");
    auto* const block = static_cast<char*>(blocks.allocate({41, 8}));
    write(block + 41);
    blocks.deallocate(block, {41, 8});
}
