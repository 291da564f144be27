// Blocks that are freed together, in an arena.
#include <mallard/arena.hpp>

#include <cassert>
#include <string>

struct node {
    int key;
    node* next;
};

int main()
{
    {
        mallard::arena<> scratch;
        node* list = nullptr;
        for (int key : {1, 2, 3})
            list = &scratch.make<node>(key, list);
        std::span<double> const weights = scratch.make_array<double>(100); // all 0
        std::string_view const name = scratch.copy("the characters are in the arena now");

        scratch.reset();   // frees all blocks, keeps the memory for the next round
        scratch.release(); // frees all blocks, returns the memory
        static_cast<void>(list), static_cast<void>(weights), static_cast<void>(name);
        assert(scratch.stats().bytes_taken == 0);
    }
    {
        mallard::arena<> scratch;
        int& kept = scratch.make<int>(1);
        for (int line = 0; line < 100; ++line) {
            mallard::scope const frame(scratch); // marks here, rewinds at the brace
            scratch.make_array<char>(1000);
        }
        assert(kept == 1 && scratch.stats().growths == 2); // two chunks suffice
    }
    {
        int closed = 0;
        mallard::arena<> scratch;
        auto& text = scratch.own<std::string>("a text that does not fit into the string object");
        scratch.defer([&] { ++closed; });
        text += '!';
        scratch.reset(); // calls the function, then destroys the string: newest first
        assert(closed == 1);
    }
    {
        mallard::arena<> scratch;
        void* const text = scratch.allocate({100, 1});
        bool const grown = scratch.try_expand(text, {100, 1}, {200, 1}); // the last block: in place
        scratch.deallocate(text, {200, 1}); // the last block: its bytes are free again
        assert(grown && scratch.allocate({8, 1}) == text);
    }
}
