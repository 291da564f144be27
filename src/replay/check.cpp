#include "check.hpp"

#include "random.hpp"
#include "walk.hpp"

namespace mallard::replay {
namespace {

constexpr std::uint64_t layout_bits = (std::uint64_t{1} << mallard_replay_op_shift) - 1;
/// In a word of `slots_`, the bit that marks a block of an operator new. This bit is the highest
/// bit of the field for the logarithm of the alignment, which is at most 30 and so does not need
/// that bit.
constexpr std::uint64_t of_new = std::uint64_t{1} << (mallard_replay_op_shift - 1);
constexpr std::uint64_t size_cut = (std::uint64_t{1} << mallard_replay_align_shift) - 1;

/// Returns whether a kind of op is a call of operator new or operator delete.
constexpr bool is_operator(unsigned kind) noexcept
{
    return kind == mallard_replay_op_new || kind == mallard_replay_op_new_aligned ||
           (kind >= mallard_replay_op_delete && kind <= mallard_replay_op_free_aligned);
}

struct target_state {
    bool is_open;
    unsigned instance;   ///< number of the instance: 1 to 31, and then 1 again
    std::uint32_t owner; ///< the thread that opened the target
};

/// Checks ops one by one, in the order of a walk. `slots_` has a word for each slot, which is
/// packed like `op::what`. The word contains the size, alignment and target of the block, and
/// `of_new`. The bits of the kind contain the number of the target's instance, which is never 0. So
/// a word of 0 marks an empty slot.
class checker {
public:
    /// Makes a checker for a walk in which the thread `last` comes last, or for the usual order if
    /// `last` is `walk::none`.
    checker(stream const& of, check_result& result, std::uint32_t last) noexcept
        : stream_(of), result_(result), last_(last),
          slots_(of.header().slots, "the slots of the check"),
          targets_(of.targets().count(), "the targets of the check"),
          from_(of.threads().count(), "the threads of the check")
    {
        targets_[0] = {true, 1, 0};
    }

    std::uint64_t calls() const noexcept { return calls_; }

    void visit(std::uint32_t thread, std::uint64_t index, op const& o) noexcept
    {
        thread_ = thread;
        index_ = index;
        o_ = &o;
        op const from = std::exchange(from_[thread], op{});
        if (mallard_replay_align_log2(o.what) > align_log2_max)
            bad("an alignment above 2^30");
        switch (mallard_replay_op_of(o.what)) {
        case mallard_replay_op_realloc:
            return reallocate(from);
        case mallard_replay_op_realloc_failed:
            return fail_to_reallocate(from);
        default:
            if (from.what != 0)
                bad("no realloc after realloc_from");
            return visit_other();
        }
    }

private:
    void visit_other() noexcept
    {
        switch (mallard_replay_op_of(o_->what)) {
        case mallard_replay_op_malloc:
        case mallard_replay_op_calloc:
        case mallard_replay_op_aligned:
        case mallard_replay_op_new:
        case mallard_replay_op_new_aligned:
            return allocate();
        case mallard_replay_op_free:
        case mallard_replay_op_delete:
        case mallard_replay_op_delete_aligned:
        case mallard_replay_op_free_sized:
        case mallard_replay_op_free_aligned:
            ++calls_;
            return void(slots_[block("frees")] = 0);
        case mallard_replay_op_free_null:
        case mallard_replay_op_malloc_failed:
        case mallard_replay_op_calloc_failed:
        case mallard_replay_op_aligned_failed:
            ++calls_;
            return void(open_target());
        case mallard_replay_realloc_from:
            block("reallocates");
            return void(from_[thread_] = *o_);
        case mallard_replay_open:
            return open();
        case mallard_replay_close:
            return close();
        case mallard_replay_end:
        case mallard_replay_publish:
        case mallard_replay_wait:
        case mallard_replay_start:
        case mallard_replay_pause:
            return;
        default:
            bad("an unknown kind");
        }
    }

    [[noreturn, gnu::cold]] void bad(const char* why) const noexcept
    {
        if (last_ != walk::none)
            stream_.lacks_edge("op %ju of thread %u has %s if thread %u is slow",
                               std::uintmax_t{index_}, thread_, why, last_);
        stream_.damaged("op %ju of thread %u has %s", std::uintmax_t{index_}, thread_, why);
    }

    [[noreturn, gnu::cold]] void lacks_block(const char* verb) const noexcept
    {
        if (last_ != walk::none)
            stream_.lacks_edge("op %ju of thread %u %s a block that is not in slot %u if thread %u "
                               "is slow",
                               std::uintmax_t{index_}, thread_, verb, o_->slot, last_);
        stream_.damaged("op %ju of thread %u %s a block that is not in slot %u",
                        std::uintmax_t{index_}, thread_, verb, o_->slot);
    }

    /// Returns the target of the op. Fails unless this thread may use the target, that is, the
    /// target is open, and this thread has opened it or it is shared.
    target_state const& open_target() const noexcept
    {
        unsigned const target = mallard_replay_target_of(o_->what);
        if (target >= targets_.count())
            bad("a target that does not exist");
        target_state const& t = targets_[target];
        if (!t.is_open)
            bad("a target that is not open");
        if (target != 0 && t.owner != thread_ && stream_.targets()[target].is_shared == 0)
            bad("a target that another thread has opened");
        return t;
    }

    /// Returns the word of `slots_` for a slot that contains the block of this op.
    std::uint64_t occupied() const noexcept
    {
        std::uint64_t const instance = open_target().instance;
        std::uint64_t const target = mallard_replay_target_of(o_->what);
        std::uint64_t const form = is_operator(mallard_replay_op_of(o_->what)) ? of_new : 0;
        return (o_->what & layout_bits) | form | instance << mallard_replay_op_shift |
               target << mallard_replay_target_shift;
    }

    /// Returns the slot of an op that uses a block. Fails if the slot does not contain that block,
    /// or if the op frees a block of malloc with operator delete, or a block of operator new with
    /// free.
    std::uint32_t block(const char* verb) const noexcept
    {
        bool const frees = mallard_replay_op_of(o_->what) != mallard_replay_realloc_from;
        std::uint64_t const expected = occupied();
        if (o_->slot >= slots_.count())
            bad("a slot that does not exist");
        std::uint64_t const found = slots_[o_->slot];
        if ((found & ~of_new) != (expected & ~of_new))
            lacks_block(verb);
        if (frees && found != expected)
            bad("an operator delete for a block of malloc, or a free for one of operator new");
        return o_->slot;
    }

    void allocate() noexcept
    {
        std::uint64_t const now = occupied();
        if (o_->slot >= slots_.count())
            bad("a slot that does not exist");
        if (slots_[o_->slot] != 0 && mallard_replay_target_of(slots_[o_->slot]) == 0)
            bad("a slot whose block is in use");
        if (mallard_replay_size(o_->what) == size_cut)
            bad("a size that is too large for the format");
        slots_[o_->slot] = now;
        ++calls_;
        sample(mallard_replay_size(o_->what));
    }

    /// Adds a size to the sample. Each size stays in the sample with the same probability
    /// (reservoir sampling).
    void sample(std::uint64_t size) noexcept
    {
        std::uint64_t const at = result_.allocations < check_result::samples
                                     ? result_.allocations
                                     : random_.below(result_.allocations + 1);
        ++result_.allocations;
        if (at < check_result::samples)
            result_.sizes[at] = size;
    }

    /// Returns whether this op has the same slot and the same target as the preceding
    /// `realloc_from`.
    bool is_same_block(op const& from) const noexcept
    {
        return from.slot == o_->slot &&
               mallard_replay_target_of(from.what) == mallard_replay_target_of(o_->what);
    }

    void reallocate(op const& from) noexcept
    {
        if (from.what == 0)
            return allocate();
        if (!is_same_block(from))
            bad("another block than the realloc_from before");
        if (mallard_replay_size(o_->what) == 0)
            bad("the size 0: an op stream has free instead");
        if (mallard_replay_size(o_->what) == size_cut)
            bad("a size that is too large for the format");
        slots_[o_->slot] = occupied();
        ++calls_;
    }

    void fail_to_reallocate(op const& from) noexcept
    {
        open_target();
        if (from.what != 0 && !is_same_block(from))
            bad("another block than the realloc_from before");
        ++calls_;
    }

    void open() noexcept
    {
        unsigned const target = mallard_replay_target_of(o_->what);
        if (target == 0 || target >= targets_.count() || targets_[target].is_open)
            bad("a target that cannot be opened");
        target_state& t = targets_[target];
        t = {true, t.instance % 31 + 1, thread_};
    }

    void close() noexcept
    {
        if (mallard_replay_target_of(o_->what) == 0)
            bad("a target that cannot be closed");
        open_target();
        targets_[mallard_replay_target_of(o_->what)].is_open = false;
    }

    stream const& stream_;
    check_result& result_;
    std::uint32_t last_;
    table<std::uint64_t> slots_;
    table<target_state> targets_;
    table<op> from_; // for each thread: the realloc_from whose realloc comes next
    random_numbers random_;
    std::uint64_t calls_ = 0;
    std::uint32_t thread_ = 0; // the thread whose op is visited
    std::uint64_t index_ = 0;
    op const* o_ = nullptr;
};

/// Computes a hash for each thread over the order in which ops use slots. For each op of a thread,
/// the hash covers the previous op of the same slot, which may belong to another thread.
class slot_order {
public:
    explicit slot_order(stream const& of) noexcept
        : last_(of.header().slots, "the last ops of the slots"),
          hashes_(of.threads().count(), "the hashes of the threads")
    {
    }

    /// Adds an op. Two orders of the same ops have equal hashes if each op has the same previous op
    /// of its slot in both orders.
    void visit(std::uint32_t thread, std::uint64_t index, op const& o) noexcept
    {
        unsigned const kind = mallard_replay_op_of(o.what);
        bool const has_slot =
            (kind >= mallard_replay_op_malloc && kind <= mallard_replay_op_free_aligned) ||
            kind == mallard_replay_realloc_from;
        if (!has_slot)
            return;
        std::uint64_t& last = last_[o.slot];
        hashes_[thread] = mallard_replay_mix(hashes_[thread], last);
        last = mallard_replay_mix(thread, index + 1);
    }

    std::uint64_t hash_of(std::size_t thread) const noexcept { return hashes_[thread]; }

private:
    table<std::uint64_t> last_; // for each slot: identifies the last op that used it
    table<std::uint64_t> hashes_;
};

/// Checks all ops in the order in which the thread `last` comes last, or in the usual order if
/// `last` is `walk::none`. Returns the number of calls.
std::uint64_t check_order(stream const& of, windows& memory, check_result& result,
                          std::uint32_t last, slot_order* slots) noexcept
{
    checker checks(of, result, last);
    walk all(of, memory, last);
    all.run([&](std::uint32_t thread, std::uint64_t index, op const& o) noexcept {
        checks.visit(thread, index, o);
        if (slots != nullptr)
            slots->visit(thread, index, o);
    });
    result.threads_peak = all.live_peak();
    return checks.calls();
}

} // namespace

void check(stream const& of, windows& memory, check_result& result) noexcept
{
    std::uint64_t const calls = check_order(of, memory, result, walk::none, nullptr);
    if (calls != of.header().calls)
        of.damaged("the number of its calls is %ju, and the header says %ju", std::uintmax_t{calls},
                   std::uintmax_t{of.header().calls});
}

std::size_t check_edges(stream const& of, windows& memory) noexcept
{
    if (of.threads().count() == 1)
        return 1; // there is no other order
    static check_result unused;
    std::size_t const threads = of.threads().count();
    slot_order usual(of);
    check_order(of, memory, unused, walk::none, &usual);
    for (std::uint32_t last = 0; last < threads; ++last) {
        slot_order other(of);
        check_order(of, memory, unused, last, &other);
        for (std::size_t thread = 0; thread < threads; ++thread) {
            if (other.hash_of(thread) != usual.hash_of(thread))
                of.lacks_edge("thread %zu finds another block in a slot if thread %u is slow",
                              thread, last);
        }
    }
    return threads;
}

} // namespace mallard::replay
