// Functions that ask the kernel for the resident memory of this process.
#pragma once

#include <cstddef>

namespace mallard::bench {

/// The resident memory in KiB; 0 if the kernel does not tell. The kernel counts in batches of pages
/// for each CPU, so a figure may be off by about a hundred KiB.
std::size_t resident_kib();
std::size_t peak_resident_kib();

/// The resident memory in KiB, counted page by page, in time that grows with the memory.
std::size_t resident_kib_exactly();

/// Resets the peak to the current memory, if the kernel allows it.
void restart_peak_resident();

} // namespace mallard::bench
