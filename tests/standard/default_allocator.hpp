// Declares it where a header of the library first names the usual allocator.
#pragma once

namespace std {

template <class T>
class mallard_default;

} // namespace std
