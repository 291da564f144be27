// follows the advice: pool AS7
//
// The program sessions.cpp with an object pool. Handles of the pool own the sessions.
#include "known.hpp"

#include <mallard/object_pool.hpp>

#include <array>

struct session {
    session(std::uint32_t by, std::uint32_t now) : user(by), opened(now) {}

    std::uint32_t user, opened;
    std::uint64_t bytes_read = 0, bytes_written = 0;
    std::array<std::uint64_t, 12> last_requests{};
};

int main(int count, char** arguments)
{
    int const rounds = known::rounds(count, arguments, 60);
    mallard::object_pool<session> pool;
    std::vector<mallard::box<session>> sessions(30'000);
    known::random_numbers random(9);
    std::uint64_t sum = 0;
    for (int i = 0; i < rounds; ++i)
        for (std::uint32_t now = 0; now < 100'000; ++now) {
            auto& place = sessions[random.below(30'000)];
            if (place != nullptr && now % 4 != 0) {
                place->bytes_read += now;
                sum = sum * 31 + place->user + place->bytes_read;
                place.reset();
            } else {
                place = pool.make(random.below(1'000'000), now);
                place->last_requests[now % 12] = now;
            }
        }
    known::print(sum);
}
