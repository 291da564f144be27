// Calls every operator new and delete once, each with a different size. Then throws bad_alloc.
#include <cstdio>
#include <cstdlib>
#include <new>

namespace {

/// Calls the operators new and delete of one kind.
template <class... More>
void pair(std::size_t bytes, More... more)
{
    ::operator delete(::operator new(bytes, more...), more...);
    ::operator delete[](::operator new[](bytes + 1, more...), more...);
    ::operator delete(::operator new(bytes + 2, more..., std::nothrow), more..., std::nothrow);
    ::operator delete[](::operator new[](bytes + 3, more..., std::nothrow), more..., std::nothrow);
}

int handled = 0;

} // namespace

int main()
{
    pair(80000);
    pair(81024, std::align_val_t{1024});
    ::operator delete(::operator new(80010), 80010);
    ::operator delete[](::operator new[](80011), 80011);
    ::operator delete(::operator new(82048, std::align_val_t{2048}), 82048, std::align_val_t{2048});
    ::operator delete[](::operator new[](82048, std::align_val_t{2048}), 82048,
                        std::align_val_t{2048});
    ::operator delete(nullptr);

    std::set_new_handler([] {
        if (++handled == 3)
            std::set_new_handler(nullptr);
    });
    std::size_t volatile const too_large = std::size_t{1} << 60;
    bool caught = false;
    try {
        std::free(::operator new(too_large));
    } catch (std::bad_alloc const&) {
        caught = true;
    }
    if (::operator new[](too_large, std::nothrow) != nullptr)
        return 1;
    std::free(std::malloc(80020)); // must not count as a call of an operator
    std::puts(caught && handled == 3 ? "done" : "no exception");
    return caught ? 0 : 1;
}
