// Declares Mallard's allocator, which the copied library headers use as the default allocator.
#pragma once

namespace std {

template <class T>
class mallard_default;

} // namespace std
