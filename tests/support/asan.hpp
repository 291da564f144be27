// Queries whether AddressSanitizer has poisoned an address. Also compiles without AddressSanitizer.
#pragma once

extern "C" [[gnu::weak]] int __asan_address_is_poisoned(void const volatile*);

namespace mallard::testing {

inline bool has_asan()
{
    return __asan_address_is_poisoned != nullptr;
}

/// Returns whether an address is poisoned. Without AddressSanitizer, returns `without_asan`.
inline bool is_poisoned(const void* p, bool without_asan)
{
    return has_asan() ? __asan_address_is_poisoned(p) != 0 : without_asan;
}

} // namespace mallard::testing
