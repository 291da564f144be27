// error: shared_handle|object_pool
#include <mallard/object_pool.hpp>

using namespace mallard;
using checked = object_pool<int, default_heap,
                            object_pool_options{.counts = counts::local, .checks = check::on}>;
rc_pool<int> numbers;
checked::rc other = numbers.make_rc(1);
