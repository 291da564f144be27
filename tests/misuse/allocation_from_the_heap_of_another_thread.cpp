// dies: mallard: the confined heap ADDRESS is used for an allocation by another thread
#include <mallard/heap.hpp>

#include <thread>

int main()
{
    mallard::heap h;
    std::thread([&] { static_cast<void>(h.allocate(100)); }).join();
}
