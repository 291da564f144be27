// What a program asks for, in all its forms, in terms of fronts. `allocate` and `deallocate`
// are in front.hpp. None of these changes errno; null is a refusal.
#pragma once

#include "front.hpp"

namespace mallard::engine {

/// `align` is a power of two.
void* allocate_aligned(std::size_t bytes, std::size_t align) noexcept;

/// Reads as zero.
void* allocate_zeroed(std::size_t bytes) noexcept;

/// The block with at least `bytes`, perhaps elsewhere; what was in it still is. Null: it is
/// as it was.
void* reallocate(void* block, std::size_t bytes) noexcept;

/// All of a block may be written to. Of what is none the process stops, and `call` says
/// in what.
std::size_t usable_bytes(const void* block, const char* call) noexcept;

/// The caller says how large it was made.
void deallocate_sized(void* block, std::size_t bytes) noexcept;

} // namespace mallard::engine
