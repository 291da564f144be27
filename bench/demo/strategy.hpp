// The fourteen allocation strategies of Lakos (ACCU 2017), as templates that are selected by
// number.
#pragma once

#include <mallard/pmr.hpp>
#include <mallard/winked.hpp>

#include <string_view>

namespace mallard::demo {

/// How a container receives its allocator: as a template argument, or as a pointer to
/// `std::pmr::memory_resource`.
enum class binding { type_parameter, abstract_base };

/// One of the strategies AS1 to AS14: an allocator, a binding, and how the structure ends
/// (destroyed, or winked out). (J. Lakos, "Local ('arena') memory allocators", ACCU 2017.)
///
///     template <class S> std::size_t count_words(std::string_view text) {
///         using word = std::basic_string<char, std::char_traits<char>,
///                                        typename S::template allocator_type<char>>;
///         using words = std::set<word, std::less<>, typename S::template allocator_type<word>>;
///         typename S::resource_type memory;
///         return S::template run<words>(memory, [&](words& w) { ...; return w.size(); });
///     }
///     for_each_strategy([&](auto s) { count_words<decltype(s)>(text); });
template <int Number>
    requires(Number >= 1 && Number <= 14)
struct strategy {
    static constexpr int number = Number;
    static constexpr bool is_global = Number <= 2;
    static constexpr bool wink_out = !is_global && Number % 2 == 0;
    static constexpr demo::binding binding = Number == 2 || (!is_global && (Number - 3) % 4 >= 2)
                                                 ? demo::binding::abstract_base
                                                 : demo::binding::type_parameter;

    static constexpr std::string_view name = std::array<std::string_view, 14>{
        "AS1", "AS2", "AS3",  "AS4",  "AS5",  "AS6",  "AS7",
        "AS8", "AS9", "AS10", "AS11", "AS12", "AS13", "AS14"}[Number - 1];
    static constexpr std::string_view words =
        std::array<std::string_view, 14>{"heap, type parameter",
                                         "heap, abstract base",
                                         "arena, type parameter",
                                         "arena, type parameter, wink-out",
                                         "arena, abstract base",
                                         "arena, abstract base, wink-out",
                                         "multipool, type parameter",
                                         "multipool, type parameter, wink-out",
                                         "multipool, abstract base",
                                         "multipool, abstract base, wink-out",
                                         "multipool<arena>, type parameter",
                                         "multipool<arena>, type parameter, wink-out",
                                         "multipool<arena>, abstract base",
                                         "multipool<arena>, abstract base, wink-out"}[Number - 1];

    /// The resource of AS1 and AS2. Both use the heap, so this object has no members.
    struct global {
        void release() noexcept {}
    };
    using local =
        std::conditional_t<Number <= 6, arena<>,
                           std::conditional_t<Number <= 10, multipool<>, multipool<arena<>>>>;

    /// The allocator that owns the memory of the structure. It has a default constructor.
    using resource_type = std::conditional_t<
        is_global, global,
        std::conditional_t<binding == demo::binding::abstract_base, pmr_resource<local>, local>>;

    template <class T>
    using allocator_type = std::conditional_t<
        binding == demo::binding::abstract_base, std::pmr::polymorphic_allocator<T>,
        std::conditional_t<is_global, std::allocator<T>, mallard::allocator<T, local>>>;

    template <class T>
    static allocator_type<T> allocator([[maybe_unused]] resource_type& memory) noexcept
    {
        if constexpr (Number == 1)
            return {};
        else if constexpr (Number == 2)
            return std::pmr::new_delete_resource();
        else if constexpr (binding == demo::binding::abstract_base)
            return &memory;
        else
            return memory;
    }

    /// Builds a `T` in `memory` and returns the result of `f(T&)`. Afterwards destroys the `T`.
    /// With wink-out, releases `memory` instead.
    template <class T, class F>
    static auto run(resource_type& memory, F f)
    {
        if constexpr (wink_out) {
            struct release_at_end {
                resource_type& memory;
                ~release_at_end() { memory.release(); }
            } const all{memory};
            winked<T> object(memory);
            return f(*object);
        } else {
            T object = std::make_obj_using_allocator<T>(allocator<std::byte>(memory));
            return f(object);
        }
    }
};

/// Calls `f(strategy<1>{})` ... `f(strategy<14>{})`.
template <class F>
void for_each_strategy(F f)
{
    [&]<int... Index>(std::integer_sequence<int, Index...>) {
        (f(strategy<Index + 1>{}), ...);
    }(std::make_integer_sequence<int, 14>());
}

} // namespace mallard::demo
