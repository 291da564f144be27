// Interprets the input as a program and runs the program on the malloc engine, with three heaps and
// sometimes a memory limit. Three threads run the program in lock step. Two of them start and end
// during the program.
#include "../../src/heap/requests.hpp"
#include "../../src/heap/slice_heap.hpp"
#include "../support/choices.hpp"
#include "../support/model.hpp"
#include "../support/threads.hpp"

#include <mallard/c/malloc.h>

#include <optional>

namespace {

using namespace mallard::testing;
using namespace mallard;

class program {
public:
    explicit program(recorded choose) : choose_(choose)
    {
        for (mallard_heap*& heap : heaps_)
            heap = new_heap();
    }

    void run()
    {
        while (choose_.more())
            switch (std::size_t const what = choose_(8)) {
            case 0:
            case 1:
                if (!hands_[what])
                    hands_[what].emplace();
                (*hands_[what])([this] { act(); });
                break;
            case 2:
                hands_[choose_(hands_.size())].reset();
                break;
            default:
                act();
            }
        end();
    }

private:
    void act()
    {
        for (std::size_t steps = 1 + choose_(16); steps-- != 0 && choose_.more();)
            step();
    }

    void step()
    {
        switch (choose_(16)) {
        default:
            return either() || blocks_.empty() ? allocate() : free(some_block());
        case 10:
        case 11:
        case 12:
            return blocks_.empty() ? void() : reallocate(some_block());
        case 13:
            return choose_(8) == 0 ? limit() : void();
        case 14:
            return choose_(4) == 0 ? idle() : void();
        case 15:
            return choose_(4) == 0 ? free_all_of(heaps_[choose_(heaps_.size())]) : count();
        }
    }

    bool either() { return choose_(2) == 0; }
    void* some_block() { return blocks_[choose_(blocks_.count())]; }
    std::size_t some_size()
    {
        constexpr std::size_t ends[] = {65, 65, 257, 1025, 16385, 65537, 1 << 21, 40 << 20};
        return choose_(ends[choose_(either() ? 4 : std::size(ends))]);
    }
    std::size_t near(std::size_t bytes)
    {
        bytes += choose_(1025);
        return bytes - std::min(bytes, choose_(1025));
    }

    enum class way { plain, cleared, aligned };

    static void* take(mallard_heap* heap, way how, layout l)
    {
        switch (how) {
        case way::aligned:
            return heap == nullptr ? mallard_aligned_alloc(l.align, l.bytes)
                                   : mallard_heap_allocate_aligned(heap, l.bytes, l.align);
        case way::cleared:
            return heap == nullptr ? mallard_calloc(1, l.bytes)
                                   : mallard_heap_calloc(heap, 1, l.bytes);
        default:
            return heap == nullptr ? mallard_malloc(l.bytes) : mallard_heap_allocate(heap, l.bytes);
        }
    }

    void allocate()
    {
        constexpr way ways[] = {way::plain, way::plain, way::cleared, way::aligned};
        way const how = ways[choose_(std::size(ways))];
        layout l{some_size(), 16};
        if (how == way::aligned)
            l.align = std::size_t{1} << choose_(16);
        mallard_heap* const heap = either() ? some_heap() : nullptr;
        void* const block = take(heap, how, l);
        if (!was_given(block))
            return;
        require(how != way::cleared || is_clear(block, l.bytes), "calloc clears");
        require(owner_of(block) == heap, "a block is of its heap");
        add(block, l);
    }

    void reallocate(void* block)
    {
        mallard_heap* const owner = owner_of(block);
        std::size_t const bytes = choose_(4) == 0 ? some_size() : near(mallard_usable_size(block));
        layout const was = blocks_.remove(block);
        std::byte const tag = was.bytes == 0 ? std::byte{} : *static_cast<std::byte*>(block);
        void* const other = mallard_realloc(block, bytes);
        if (bytes == 0)
            return require(other == nullptr, "a realloc to 0 bytes frees");
        bool const given = was_given(other);
        void* const now = given ? other : block;
        keeps(now, given ? std::min(was.bytes, bytes) : was.bytes, tag);
        require(owner_of(now) == owner, "a block stays in its heap");
        require(mallard_usable_size(now) >= bytes || !given, "a block is as large as requested");
        // The model gets the usable size, because `free` below may pass the recorded size to a
        // sized delete, which stops the process if the block is much larger than that size. (Real
        // programs never use a sized delete for a reallocated block.)
        blocks_.add(now, given ? layout{mallard_usable_size(now), 16} : was);
    }

    void free(void* block)
    {
        layout const l = blocks_.remove(block);
        if (choose_(4) == 0)
            engine::deallocate_sized(block, l.bytes, l.align);
        else if (mallard_heap* const owner = owner_of(block); owner != nullptr && either())
            mallard_heap_free(owner, block);
        else
            mallard_free(block);
    }

    /// Adds a block to the model, half the time with its usable size.
    void add(void* block, layout l)
    {
        std::size_t const usable = mallard_usable_size(block);
        require(usable >= l.bytes, "a block is as large as requested");
        blocks_.add(block, {either() ? usable : l.bytes, l.align});
    }

    bool was_given(const void* block) const
    {
        require(block != nullptr || limited_, "an allocation succeeds");
        return block != nullptr;
    }
    static bool is_clear(const void* block, std::size_t bytes)
    {
        auto const* const all = static_cast<const std::byte*>(block);
        for (std::size_t i = 0; i < bytes; i += i < 4096 ? 1 : 509)
            if (all[i] != std::byte{})
                return false;
        return true;
    }
    /// Checks that the block still begins with the bytes that the model wrote.
    static void keeps(const void* block, std::size_t bytes, std::byte tag)
    {
        auto const* const all = static_cast<const std::byte*>(block);
        require(std::all_of(all, all + std::min<std::size_t>(bytes, 256),
                            [=](std::byte b) { return b == tag; }),
                "a block keeps its bytes");
    }

    // --- heaps, and helpers of all calls ------------------------------------------

    mallard_heap* new_heap()
    {
        mallard_heap_options o{};
        o.struct_bytes = sizeof o;
        o.threads = either() ? MALLARD_HEAP_SHARED : MALLARD_HEAP_CONFINED;
        mallard_heap* const heap = mallard_heap_create(&o);
        require(heap != nullptr, "an allocation succeeds");
        return heap;
    }

    /// Chooses one of the heaps, and confines that heap to this thread.
    mallard_heap* some_heap()
    {
        mallard_heap* const heap = heaps_[choose_(heaps_.size())];
        mallard_heap_adopt(heap);
        return heap;
    }

    mallard_heap* owner_of(const void* block) const
    {
        for (mallard_heap* const heap : heaps_)
            if (mallard_heap_owns(heap, block) != 0)
                return heap;
        return nullptr;
    }

    void free_all_of(mallard_heap*& heap)
    {
        for (std::size_t i = blocks_.count(); i-- != 0;)
            if (owner_of(blocks_[i]) == heap)
                blocks_.remove(blocks_[i]);
        mallard_heap_adopt(heap);
        switch (choose_(3)) {
        case 0:
            return mallard_heap_reset(heap);
        case 1:
            return mallard_heap_release(heap);
        default:
            mallard_heap_destroy(heap);
            heap = new_heap();
        }
    }

    void count()
    {
        mallard_heap* const heap = some_heap();
        if (either())
            mallard_heap_trim(heap, choose_(2) << 20);
        mallard_heap_statistics found{};
        found.struct_bytes = sizeof found;
        require(mallard_heap_stats(heap, &found) == 0, "there are statistics");
        for (std::size_t i = 0; i < blocks_.count(); ++i)
            if (owner_of(blocks_[i]) == heap)
                found.blocks_live -= 1;
        require(found.blocks_live == 0, "all blocks are counted");
    }

    void limit()
    {
        limited_ = either();
        mallard_limit(0, limited_ ? std::size_t{1} << (16 + choose_(8)) : 0, nullptr, nullptr);
    }

    void idle()
    {
        engine::the_slice_heap.age();
        if (either())
            mallard_trim(choose_(2) << 20);
    }

    void end()
    {
        mallard_limit(0, 0, nullptr, nullptr);
        while (!blocks_.empty())
            free(some_block());
        for (mallard_heap* const heap : heaps_)
            mallard_heap_destroy(heap);
        for (auto& hand : hands_)
            hand.reset();
        for (int i = 0; i < 4; ++i) // messages may have to be forwarded several times
            mallard_trim(0);
        require(engine::the_slice_heap.now().used == 0, "all freed memory is returned");
    }

    recorded choose_;
    model blocks_;
    std::array<mallard_heap*, 3> heaps_{};
    std::array<std::optional<puppet>, 2> hands_; // the third thread is this one
    bool limited_ = false;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes)
{
    program(recorded({data, bytes})).run();
    return 0;
}
