// Marks forty documents as regions. One of the regions ends by an exception. For each document, a
// block of 70,000 bytes or a few more is allocated.
#include "../../../include/mallard/trace/region.h"

#include <cstdlib>

namespace {

void convert(int document)
{
    mallard::region const marked("convert");
    void* volatile block = std::malloc(70'000 + static_cast<std::size_t>(document));
    std::free(block);
    mallard::region const inner("a part of the document with a long name");
    if (document == 7)
        throw document;
}

} // namespace

int main()
{
    mallard_region_end("convert"); // ends a region that was not begun
    for (int document = 0; document < 40; ++document) {
        try {
            convert(document);
        } catch (int) {
        }
    }
    mallard_region_begin("");
    mallard_region_end("");
    mallard_region_begin(nullptr);
}
