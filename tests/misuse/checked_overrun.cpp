// dies: mallard: write to ADDRESS, past the end of a block of "orders"
#include <mallard/debug/checked.hpp>
#include <mallard/multipool.hpp>

// AddressSanitizer does not check this function: otherwise it would stop the program at the write.
[[gnu::no_sanitize_address]] void write(volatile char* p)
{
    *p = 1;
}

int main()
{
    mallard::checked<mallard::multipool<>> blocks("orders");
    auto* const block = static_cast<char*>(blocks.allocate({40}));
    write(block + 40);
    blocks.deallocate(block, {40});
}
