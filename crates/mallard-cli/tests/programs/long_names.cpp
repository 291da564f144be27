// A program whose functions have names of hundreds of characters. They allocate on several call stacks, for
// some blocks as maps and lists do, and some blocks are never freed.
#include <cstdlib>
#include <list>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace a_library_with_a_long_name::and_an_inner_namespace {

template <int Number>
struct policy_that_says_how_elements_are_kept_and_compared_and_destroyed {};

template <class First, class Second, class Third>
struct container_of_elements_which_are_kept_for_the_time_of_one_request {
    template <class Key>
    [[gnu::noinline]] static void* insert_all_elements_of_the_request_and_then_remove_them_again(int number)
    {
        std::map<std::string, std::list<std::vector<int>>> elements;
        for (int i = 0; i < number; ++i)
            elements["an element with a name that needs a block " + std::to_string(i)].push_back({i, i, i});
        return std::malloc(static_cast<std::size_t>(number) + 1); // never freed
    }
};

template <int Number>
[[gnu::noinline]] void* request()
{
    using first = policy_that_says_how_elements_are_kept_and_compared_and_destroyed<Number>;
    using second = policy_that_says_how_elements_are_kept_and_compared_and_destroyed<Number + 1>;
    using container = container_of_elements_which_are_kept_for_the_time_of_one_request<first, second, first>;
    void* last = nullptr;
    for (int i = 0; i < 40; ++i)
        last = container::template insert_all_elements_of_the_request_and_then_remove_them_again<second>(Number);
    return last;
}

} // namespace a_library_with_a_long_name::and_an_inner_namespace

int main(int count, char**)
{
    using namespace a_library_with_a_long_name::and_an_inner_namespace;
    std::thread other([] { request<40>(); });
    other.join();
    for (int i = 0; i < 10 * count; ++i) {
        request<100>();
        request<200>();
        request<300>();
    }
}
