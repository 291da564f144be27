// Runs a fuzz target without a fuzzer, on the named files or on fixed inputs, so that every
// compiler and sanitizer can run the target.
#include "../../support/length.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes);

int main(int count, char** arguments)
{
    for (int i = 1; i < count; ++i) {
        std::ifstream file(arguments[i], std::ios::binary);
        if (!file) {
            std::fprintf(stderr, "fuzz driver: cannot read %s\n", arguments[i]);
            return 1;
        }
        std::vector<std::uint8_t> const input(std::istreambuf_iterator<char>(file), {});
        LLVMFuzzerTestOneInput(input.data(), input.size());
    }
    if (count > 1)
        return 0;

    std::mt19937 random(1);
    for (std::size_t i = 0; i < 500; i += mallard::testing::stride(10)) {
        std::vector<std::uint8_t> input(random() % (16 + 8 * i));
        for (auto& byte : input)
            byte = static_cast<std::uint8_t>(random());
        LLVMFuzzerTestOneInput(input.data(), input.size());
    }
}
