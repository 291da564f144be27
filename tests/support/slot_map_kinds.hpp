// The kinds of slot maps for typed tests.
#pragma once

#include <mallard/slot_map.hpp>

#include <gtest/gtest.h>

#include <string>

namespace mallard::testing {

struct in_reserve {
    static constexpr const char* name = "reserved";
    template <class T, class Key = key32, slot_map_options O = slot_map_options{}>
    using map = slot_map<T, Key, reserved<>, O>;
};
struct on_the_heap {
    static constexpr const char* name = "heap";
    template <class T, class Key = key32, slot_map_options O = slot_map_options{}>
    using map = slot_map<T, Key, default_heap, O>;
};
struct in_itself {
    static constexpr const char* name = "fixed";
    template <class T, class Key = key32, slot_map_options O = slot_map_options{}>
    using map = slot_map<T, Key, fixed<200>, O>;
};
struct slot_map_names {
    template <class Kind>
    static std::string GetName(int)
    {
        return Kind::name;
    }
};

template <class Kind>
class a_slot_map : public ::testing::Test {
protected:
    template <class T, class Key = key32, slot_map_options O = slot_map_options{}>
    using map = typename Kind::template map<T, Key, O>;
};
using slot_map_kinds = ::testing::Types<in_reserve, on_the_heap, in_itself>;

} // namespace mallard::testing
