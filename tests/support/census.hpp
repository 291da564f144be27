// Objects whose constructions and destructions are counted.
#pragma once

#include "require.hpp"

#include <cstddef>
#include <set>

namespace mallard::testing {

/// Records which objects are alive. No object may be alive when the census is destroyed.
class census {
public:
    census() = default;
    census(const census&) = delete;
    census& operator=(const census&) = delete;
    ~census() { require(living_.empty(), "each object is destroyed"); }

    std::size_t living() const { return living_.size(); }
    std::size_t dead() const { return dead_; }
    bool has(const void* citizen) const { return living_.contains(citizen); }

    /// Makes the `n`-th construction from now on throw an `int`. 1 means the next construction.
    void throw_at(std::size_t n) { births_to_go_ = n; }
    /// Forgets all objects, after a wink-out, which runs no destructors.
    void forget() { living_.clear(); }

private:
    friend class citizen;

    void add(const void* one)
    {
        if (births_to_go_ != 0 && --births_to_go_ == 0)
            throw 1;
        require(living_.insert(one).second, "objects are apart");
    }
    void remove(const void* one)
    {
        require(living_.erase(one) == 1, "an object dies once");
        ++dead_;
    }

    std::set<const void*> living_;
    std::size_t dead_ = 0, births_to_go_ = 0;
};

/// An object that a census counts. It cannot be copied or moved.
class citizen {
public:
    explicit citizen(census& of, int number = 0) : value(number), of_(of) { of_.add(this); }
    citizen(const citizen&) = delete;
    citizen& operator=(const citizen&) = delete;
    ~citizen() { of_.remove(this); }

    int value;

private:
    census& of_;
};

} // namespace mallard::testing
