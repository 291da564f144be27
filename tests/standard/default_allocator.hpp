// Declares Mallard's allocator, which the copied headers of the library name as default allocator.
#pragma once

namespace std {

template <class T>
class mallard_default;

} // namespace std
