// Declares the allocator before a header of the standard library names the default allocator.
#pragma once

namespace std {

template <class T>
class mallard_default;

} // namespace std
