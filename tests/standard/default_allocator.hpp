// Declares the allocator before a header of the standard library names its default allocator.
#pragma once

namespace std {

template <class T>
class mallard_default;

} // namespace std
