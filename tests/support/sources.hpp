// Sources that check the calls of the allocator above them.
#pragma once

#include "require.hpp"

#include <mallard/source.hpp>

#include <cstring>
#include <map>
#include <vector>

namespace mallard::testing {

/// A strict source over the heap. A chunk has exactly the requested alignment, is filled with
/// `fresh` bytes, and has canaries on both sides. `give` verifies that the chunk came from this
/// source, and the destructor verifies that all chunks were returned.
///
/// counting_source heap; pool<ref<counting_source>> blocks(48, 0, heap);
class counting_source {
public:
    static constexpr std::byte fresh{0xa5};

    counting_source() = default;
    counting_source(const counting_source&) = delete;
    counting_source& operator=(const counting_source&) = delete;
    ~counting_source() { require(live_.empty(), "all chunks are given back"); }

    chunk try_take(layout l) noexcept
    {
        asked_.push_back(l);
        if (l.bytes > absurd || l.align > absurd)
            return {};
        std::byte* const base = static_cast<std::byte*>(
            ::operator new(l.align + l.bytes + canary_bytes, std::align_val_t{2 * l.align}));
        std::byte* const data = base + l.align;
        std::memset(data - before(l.align), canary, before(l.align) + l.bytes + canary_bytes);
        std::memset(data, static_cast<int>(fresh), l.bytes);
        asan::poison(data - before(l.align), before(l.align));
        asan::poison(data + l.bytes, canary_bytes);
        chunk const taken{data, l.bytes, l.align};
        live_.emplace(data, taken);
        bytes_ += l.bytes;
        peak_ = std::max(peak_, bytes_);
        return taken;
    }

    void give(chunk c) noexcept
    {
        auto const found = live_.find(c.data);
        require(found != live_.end(), "a chunk given back was taken, and only once");
        require(found->second.bytes == c.bytes, "a chunk is given back with its size");
        require(found->second.align == c.align, "a chunk is given back with its alignment");
        live_.erase(found);
        bytes_ -= c.bytes;
        gives_ += 1;

        auto* const data = static_cast<std::byte*>(c.data);
        std::size_t const front = before(c.align);
        asan::unpoison(data - front, front);
        asan::unpoison(data + c.bytes, canary_bytes);
        require(is_intact(data - front, front), "nothing is written before a chunk");
        require(is_intact(data + c.bytes, canary_bytes), "nothing is written after a chunk");
        std::memset(data, canary, c.bytes); // AddressSanitizer must allow the write
        ::operator delete(data - c.align, std::align_val_t{2 * c.align});
    }

    /// Returns the layouts of all requests, including failed ones.
    const std::vector<layout>& asked() const { return asked_; }
    std::size_t calls() const { return asked_.size(); }
    std::size_t gives() const { return gives_; }
    std::size_t bytes() const { return bytes_; }
    std::size_t bytes_peak() const { return peak_; }
    const std::map<void*, chunk>& live() const { return live_; }

    /// Returns whether one live chunk contains all of the `bytes` bytes from `p` on.
    bool holds(const void* p, std::size_t bytes = 1) const
    {
        auto const after = live_.upper_bound(const_cast<void*>(p));
        if (after == live_.begin())
            return false;
        chunk const& c = std::prev(after)->second;
        return static_cast<const std::byte*>(p) + std::max(bytes, std::size_t{1}) <=
               static_cast<std::byte*>(c.data) + c.bytes;
    }

    /// Returns the number of bytes of live chunks that the allocator or its callers have written.
    [[gnu::no_sanitize_address]] std::size_t written() const
    {
        std::size_t count = 0;
        for (auto const& [data, c] : live_)
            for (std::size_t i = 0; i < c.bytes; ++i)
                count += static_cast<const std::byte*>(data)[i] != fresh;
        return count;
    }

protected:
    void refuse(layout l) { asked_.push_back(l); }

private:
    static constexpr std::size_t absurd = std::size_t{1} << 32;
    static constexpr std::size_t canary_bytes = 16;
    static constexpr int canary = 0x5e;

    static std::size_t before(std::size_t align) { return std::min(align, canary_bytes); }

    static bool is_intact(const std::byte* from, std::size_t bytes)
    {
        bool intact = true;
        for (std::size_t i = 0; i < bytes; ++i)
            intact = intact && from[i] == std::byte{canary};
        return intact;
    }

    std::map<void*, chunk> live_;
    std::vector<layout> asked_;
    std::size_t bytes_ = 0, peak_ = 0, gives_ = 0;
};

/// A `counting_source` that returns more bytes than requested, as `pages` does.
class generous_source : public counting_source {
public:
    chunk try_take(layout l) noexcept
    {
        return counting_source::try_take({l.bytes + 1000, l.align});
    }
};

/// A `counting_source` whose calls fail when a test requests it.
class failing_source : public counting_source {
public:
    /// Makes the calls number `n` to `last` from now on fail. 1 means the next call.
    void fail_at(std::size_t n, std::size_t last) { first_ = calls() + n, last_ = calls() + last; }
    void fail_at(std::size_t n) { fail_at(n, n); }
    void fail_from(std::size_t n) { fail_at(n, std::size_t{1} << 40); }
    void fail_every(std::size_t n) { every_ = n; }
    /// Makes requests for more than `bytes` fail.
    void fail_above(std::size_t bytes) { largest_ = bytes; }
    void fail_never() { first_ = last_ = every_ = 0, largest_ = bytes_max; }

    chunk try_take(layout l) noexcept
    {
        std::size_t const call = calls() + 1;
        bool const fails = (first_ <= call && call <= last_) ||
                           (every_ != 0 && call % every_ == 0) || l.bytes > largest_;
        failures_ += fails;
        return fails ? refuse(l), chunk{} : counting_source::try_take(l);
    }

    std::size_t failures() const { return failures_; }

private:
    std::size_t first_ = 0, last_ = 0, every_ = 0, largest_ = bytes_max, failures_ = 0;
};

/// Runs `f(source)` with a source whose first call fails, then with a new source whose second call
/// fails, and so on, until no call fails. Each run must free all memory.
template <class F>
void for_each_refusal(F f)
{
    for (std::size_t n = 1, failures = 1; failures != 0; ++n) {
        doing = "the source refuses call " + std::to_string(n);
        failing_source source;
        source.fail_at(n);
        f(source);
        failures = source.failures();
    }
    doing.clear();
}

/// The exception of `failing_resource`; deliberately not a `std::bad_alloc`.
struct refusal {
    std::size_t bytes, align;
};

/// A `std::pmr` upstream over a `failing_source`. It throws `refusal`, not `std::bad_alloc`.
class failing_resource final : public std::pmr::memory_resource {
public:
    failing_source source;

private:
    void* do_allocate(std::size_t bytes, std::size_t align) override
    {
        chunk const taken = source.try_take({bytes, align});
        return taken.data == nullptr ? throw refusal{bytes, align} : taken.data;
    }
    void do_deallocate(void* p, std::size_t bytes, std::size_t align) override
    {
        source.give({p, bytes, align});
    }
    bool do_is_equal(const memory_resource& other) const noexcept override
    {
        return this == &other;
    }
};

} // namespace mallard::testing
