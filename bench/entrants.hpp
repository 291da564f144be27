// Makes the entrants of an experiment from a list of contender types and one measured function. An
// entrant is a contender with the function that prepares the case for it. The measured function is
// compiled once for each type.
#pragma once

#include <bench/harness.hpp>
#include <bench/patterns.hpp>

#include <type_traits>

namespace mallard::bench {

template <class... Contenders>
struct contender_list {
    template <class... More>
    using with = contender_list<Contenders..., More...>;
};

/// Whether the contender is an object that has to be constructed. A general heap already exists.
template <class C>
constexpr bool is_pool = true;
template <class C>
    requires requires { C::is_pool; }
constexpr bool is_pool<C> = C::is_pool;

/// The requirements of a case. A contender whose frees search the whole free list rejects large
/// cases, because they would take hours.
struct demand {
    order frees = order::forward;
    std::size_t live = 1;
    std::size_t threads = 1; ///< threads that call the contender at the same time
    bool crosses = false;    ///< one thread frees blocks of another thread
};

template <class C>
concept choosy = requires(demand d) {
    { C::refusal(d) } -> std::same_as<const char*>; // null if the contender can run
};

template <class C>
void ask([[maybe_unused]] demand d)
{
    if constexpr (choosy<C>) {
        if (const char* const why = C::refusal(d))
            throw cannot_run(why);
    }
}

/// Makes one entrant for each contender type. `body.template operator()<C>()` prepares contender
/// `C` and returns the function that does its rounds.
template <class... Contenders, class Body>
std::vector<entrant> entrants_of(contender_list<Contenders...>, demand wanted, Body body)
{
    return {entrant{
        .name = [] { return Contenders::name(); },
        .prepare = [wanted, body]() -> round_function {
            ask<Contenders>(wanted);
            return body.template operator()<Contenders>();
        },
    }...};
}

/// Appends `more` to `all`.
template <class T>
void append(std::vector<T>& all, std::vector<T> more)
{
    for (T& e : more)
        all.push_back(std::move(e));
}

} // namespace mallard::bench
