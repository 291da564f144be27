// A heap profile: estimates from a few samples how much memory each part of a program has.
#include <mallard/c/malloc.h>

#include <cassert>
#include <map>
#include <vector>

namespace {

struct sampled {
    const char* part;
    double bytes;
};
using profile = std::map<void*, sampled>;

thread_local const char* part = "start"; // or the stack, from mallard::os::call_stack

void tell(void* context, mallard_sample_event event, const mallard_sample* sample)
{
    auto& live = *static_cast<profile*>(context);
    if (event == MALLARD_SAMPLE_ALLOCATED)
        live[sample->block] = {part, sample->weight_bytes};
    else
        live.erase(sample->block);
}

double bytes_of(const profile& live, const char* which)
{
    double sum = 0;
    for (auto const& [block, one] : live)
        sum += one.part == which ? one.bytes : 0;
    return sum;
}

} // namespace

int main()
{
    static const char* const parser = "parser";
    static const char* const cache = "cache";
    std::vector<void*> blocks;
    profile live;
    mallard_sampling(16 << 10, tell, &live); // one byte in 16 KiB; 512 KiB for a large program
    for (int i = 0; i < 100'000; ++i) {
        part = parser;
        mallard_free(mallard_malloc(200));
        part = cache;
        blocks.push_back(mallard_malloc(100));
    }
    mallard_sampling(0, nullptr, nullptr); // no thread writes to the profile any more
    assert(bytes_of(live, parser) == 0);
    assert(bytes_of(live, cache) > 5e6 && bytes_of(live, cache) < 15e6); // 10,000,000
    for (void* const block : blocks)
        mallard_free(block);
}
