// What this process holds of the machine's memory, asked of the kernel.
#pragma once

#include <cstddef>

namespace mallard::bench {

/// In KiB; 0 where the kernel does not tell. The kernel counts in batches of
/// pages for each CPU, so a figure may be off by about a hundred KiB.
std::size_t resident_kib();
std::size_t peak_resident_kib();

/// Counted page by page, in time that grows with what is held.
std::size_t resident_kib_exactly();

/// Makes the peak begin anew at what is held now, if the kernel allows it.
void restart_peak_resident();

} // namespace mallard::bench
