// Functions that read the resident memory of this process from the kernel.
#pragma once

#include <cstddef>

namespace mallard::bench {

/// Returns the resident memory in KiB, or 0 if the kernel does not report it. The kernel counts in
/// batches of pages for each CPU, so the result may be off by about a hundred KiB.
std::size_t resident_kib();
std::size_t peak_resident_kib();

/// Returns the resident memory in KiB, counted page by page. The duration of the call is
/// proportional to the resident memory.
std::size_t resident_kib_exactly();

/// Sets the peak to the current memory, if the kernel allows that.
void restart_peak_resident();

} // namespace mallard::bench
