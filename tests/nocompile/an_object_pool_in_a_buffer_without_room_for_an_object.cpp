// error: source_of_bytes<100, 1[0-9][0-9]>
#include <mallard/object_pool.hpp>
#include <mallard/source.hpp>

mallard::object_pool<long, mallard::buffer<100>,
                     mallard::object_pool_options{.grow = mallard::growth::none(100)}>
    numbers;
