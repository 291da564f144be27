// Helpers of the tests of the C API.
#pragma once

#include <mallard/c/mallard.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <gtest/gtest.h>
#include <map>
#include <mutex>
#include <string>

namespace mallard::testing {

/// Returns the explanation of the last failure in this thread.
inline std::string explanation()
{
    char text[MALLARD_EXPLANATION_BYTES];
    return mallard_explain(text, sizeof text);
}

/// Expects that the last failure has this code and this first line, and an explanation of three
/// lines. Clears errno for the next failure.
inline void expect_failure(mallard_error error, const std::string& first_line)
{
    EXPECT_EQ(errno, error < MALLARD_ERROR_TOO_LARGE ? EINVAL : ENOMEM);
    EXPECT_EQ(mallard_last_error(), error);
    std::string const all = explanation();
    std::size_t const first = all.find('\n');
    std::size_t const second = all.find('\n', first + 1);
    EXPECT_EQ(all.substr(0, first), first_line);
    ASSERT_NE(second, std::string::npos) << all;
    EXPECT_EQ(all.substr(first + 1, 2), "  ") << all;
    EXPECT_EQ(all.substr(second + 1, 8), "  help: ") << all;
    EXPECT_EQ(all.find('\n', second + 1), all.size() - 1) << all;
    EXPECT_LT(all.size() + 1, std::size_t{MALLARD_EXPLANATION_BYTES});
    errno = 0;
}

template <class Options>
Options sized()
{
    Options options{};
    options.struct_bytes = sizeof options;
    return options;
}

inline mallard_pool_options pool_of(std::size_t block_bytes)
{
    auto options = sized<mallard_pool_options>();
    options.block_bytes = block_bytes;
    return options;
}

/// Sets the threading mode. A lock-free pool does not grow, so it gets one chunk of `bytes`.
inline void choose_sync(mallard_pool_options& options, int sync, std::size_t bytes = 1 << 20)
{
    options.sync = sync;
    if (sync != MALLARD_SYNC_LOCK_FREE)
        return;
    options.growth = MALLARD_GROWTH_NONE;
    options.first_bytes = bytes;
}

inline bool is_aligned(const void* p, std::size_t align)
{
    return reinterpret_cast<std::uintptr_t>(p) % align == 0;
}

/// Allocates until the pool fails, and returns the number of blocks.
inline std::size_t allocate_all(mallard_pool* pool)
{
    std::size_t count = 0;
    while (mallard_pool_allocate(pool) != nullptr)
        ++count;
    return count;
}

/// A source of C functions that records its chunks and may fail. Thread-safe.
class recording_source {
public:
    ~recording_source() { EXPECT_TRUE(taken_.empty()) << "not all was given back"; }

    template <class Options>
    void serve(Options& options)
    {
        options.take = take;
        options.give = give;
        options.context = this;
    }

    std::size_t bytes_taken() const { return bytes_; }
    std::size_t calls() const { return calls_; }
    std::size_t refusals() const { return refusals_; }

    std::size_t refuse_every = 0;     ///< every n-th `take` fails; 0 means that none fails
    std::size_t bytes_max = SIZE_MAX; ///< larger chunk requests fail
    /// Added to the address of each chunk whose requested alignment is above 8 bytes.
    std::size_t misalign_by = 0;

private:
    static void* take(void* self, std::size_t bytes, std::size_t align)
    {
        return static_cast<recording_source*>(self)->take(bytes, align);
    }
    static void give(void* self, void* chunk, std::size_t bytes, std::size_t align)
    {
        static_cast<recording_source*>(self)->give(chunk, bytes, align);
    }

    struct entry {
        void* memory;
        std::size_t bytes;
        std::size_t align;
    };

    void* take(std::size_t bytes, std::size_t align)
    {
        std::lock_guard const one_at_a_time(lock_);
        EXPECT_GT(bytes, 0U);
        EXPECT_EQ(align & (align - 1), 0U);
        ++calls_;
        if (bytes > bytes_max || (refuse_every != 0 && calls_ % refuse_every == 0)) {
            ++refusals_;
            return nullptr;
        }
        std::size_t const shift = align > 8 ? misalign_by : 0;
        std::size_t const rounded = (bytes + shift + align - 1) / align * align;
        void* const memory = std::aligned_alloc(align < 8 ? 8 : align, rounded < 8 ? 8 : rounded);
        void* const chunk = static_cast<char*>(memory) + shift;
        taken_[chunk] = {memory, bytes, align};
        bytes_ += bytes;
        return chunk;
    }

    void give(void* chunk, std::size_t bytes, std::size_t align)
    {
        std::lock_guard const one_at_a_time(lock_);
        auto const at = taken_.find(chunk);
        ASSERT_NE(at, taken_.end()) << "never taken";
        EXPECT_EQ(at->second.bytes, bytes);
        EXPECT_EQ(at->second.align, align);
        std::free(at->second.memory);
        taken_.erase(at);
        bytes_ -= bytes;
    }

    std::mutex lock_;
    std::map<void*, entry> taken_;
    std::size_t bytes_ = 0;
    std::size_t calls_ = 0;
    std::size_t refusals_ = 0;
};

} // namespace mallard::testing
