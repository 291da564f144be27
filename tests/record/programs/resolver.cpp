// Allocates in the resolver of an indirect function (ifunc). The loader runs the resolver before
// thread-local variables have their initial values.
#include <cstdlib>
#include <new>

namespace {

void* malloced;
void* resized;
void* newed;

} // namespace

extern "C" {

void nothing() {}

auto resolve() -> void (*)()
{
    malloced = std::realloc(std::malloc(70001), 70002);
    std::free(std::calloc(1, 70003));
    resized = std::aligned_alloc(64, 70016);
    newed = ::operator new(70005);
    ::operator delete(::operator new(70006));
    return nothing;
}

[[gnu::ifunc("resolve")]] void indirect();

} // extern "C"

int main()
{
    indirect();
    std::free(malloced);
    std::free(std::realloc(resized, 70011));
    ::operator delete(newed);
    std::free(std::malloc(70012));
}
