// A stretch of a program whose blocks all die together.
#pragma once

#include <mallard/detail/base/cxx20.hpp>

namespace mallard {

/// Rewinds an arena to where it was, when it goes out of scope.
///
///     { mallard::scope frame(scratch); parse(scratch, line); }
template <class Arena>
class [[nodiscard]] scope {
public:
    explicit scope(Arena& arena) noexcept : arena_(arena), mark_(arena.mark()) {}
    ~scope() { arena_.rewind(mark_); }
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;

private:
    Arena& arena_;
    typename Arena::mark_type mark_;
};

} // namespace mallard
