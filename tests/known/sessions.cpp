// expected advice: pool AS7
//
// A server with 30,000 sessions, which open and close in random order. All have the same type.
#include "known.hpp"

#include <array>
#include <memory>

struct session {
    session(std::uint32_t by, std::uint32_t now) : user(by), opened(now) {}

    std::uint32_t user, opened;
    std::uint64_t bytes_read = 0, bytes_written = 0;
    std::array<std::uint64_t, 12> last_requests{};
};

int main(int count, char** arguments)
{
    int const rounds = known::rounds(count, arguments, 60);
    std::vector<std::unique_ptr<session>> sessions(30'000);
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
                place = std::make_unique<session>(random.below(1'000'000), now);
                place->last_requests[now % 12] = now;
            }
        }
    known::print(sum);
}
