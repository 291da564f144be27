#include <bench/demo/json_reader.hpp>

#include <memory>

namespace mallard::demo {

namespace {

/// Replaces a strategy: has the members that the reader needs, and allocates from the default heap.
struct plain {
    template <class T>
    using allocator_type = std::allocator<T>;
};

} // namespace

std::string json_fault(std::string_view text)
{
    try {
        json_reader<plain>(text, {}).read();
    } catch (const json_error& error) {
        return error.what();
    }
    return {};
}

} // namespace mallard::demo
