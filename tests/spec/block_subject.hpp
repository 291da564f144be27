// The arena, pool or multipool on which a program of spec/ runs.
#pragma once

#include "blocks.hpp"
#include "element.hpp"

#include <mallard/arena.hpp>
#include <mallard/multipool.hpp>
#include <mallard/pool.hpp>

namespace mallard::testing::spec {

template <class A>
struct spec_mark {};
template <rewindable A>
struct spec_mark<A> {
    typename A::mark_type at;
    std::vector<blocks::block> then;
};

/// Runs the operations ("verbs") of a spec/ program that the allocator `A` supports.
template <class A>
class block_subject final : public subject {
    static constexpr bool has_one_size = requires(A& a) { a.block_bytes(); };
    static constexpr bool has_marks = rewindable<A>;

public:
    template <class... Args>
    explicit block_subject(ground& on, Args&&... args)
        : on_(on), a_(std::make_unique<A>(std::forward<Args>(args)...))
    {
    }

    bool run(const std::string& verb, const std::string& name, line& l) override
    {
        if (verb == "allocate")
            allocate(name, asked(l));
        else if (verb == "fill")
            fill(asked(l));
        else if (verb == "free")
            free(l.word("a block"));
        else if (verb == "expand")
            hold(expand(l, true), "refused");
        else if (verb == "reset")
            a_->reset(), forget();
        else if (verb == "release")
            a_->release(), forget();
        else if (verb == "end")
            a_.reset(), forget();
        else if (verb == "trim")
            a_->trim(l.number("bytes to keep"));
        else if (verb == "move")
            move_there_and_back(*a_, [this](A& from) { hold_works(from); });
        else
            return run_in_arena(verb, name, l);
        return true;
    }

    bool refuses(const std::string& verb, line& l) override
    {
        if (verb == "allocate") {
            layout const asked_for = asked(l);
            hold(a_->try_allocate(asked_for) == nullptr, "try_allocate gives a block");
            hold(throws_bad_alloc([&] { static_cast<void>(a_->allocate(asked_for)); }),
                 "allocate gives a block");
        } else if (verb == "expand") {
            hold(!expand(l, false), "it grows");
        } else {
            return false;
        }
        return true;
    }

    bool throws(const std::string& verb, line& l) override
    {
        if constexpr (has_marks) {
            std::size_t const value = l.number("a value");
            if (verb == "make")
                static_cast<void>(a_->template make<plain_element>(value));
            else if (verb == "own")
                static_cast<void>(a_->template own<plain_element>(value));
            return verb == "make" || verb == "own";
        }
        return false;
    }

    bool expect(const std::string& name, const std::string& is, line& l) override
    {
        if (auto const made = made_.find(name); made != made_.end() && is == "holds")
            hold(is_of_value(*made->second, l.number("a value")), "");
        else
            return expect_of_block(blocks_, name, is, l);
        return true;
    }

    std::optional<std::size_t> count(const std::string& name) const override
    {
        if constexpr (has_one_size) {
            if (name == "block_bytes")
                return a_->block_bytes();
            if (name == "block_align")
                return a_->block_align();
        }
        if constexpr (!has_marks)
            if (name == "live")
                return a_ == nullptr ? 0 : a_->stats().blocks_live;
        return {};
    }

    void verify() const override { blocks_.verify(); }

private:
    layout asked(line& l) const
    {
        if constexpr (has_one_size)
            return {a_->block_bytes(), a_->block_align()};
        std::size_t const bytes = l.number("bytes");
        return {bytes, l.number("an alignment")};
    }

    void allocate(const std::string& name, layout l)
    {
        void* block = nullptr;
        must([&] { block = a_->allocate(l); });
        blocks_.add(name, block, l, on_.source);
    }
    void fill(layout l)
    {
        while (void* const block = a_->try_allocate(l))
            blocks_.add("", block, l, on_.source);
    }
    void free(const std::string& name)
    {
        blocks::block const b = blocks_.take(name);
        a_->deallocate(b.begin, b.asked);
    }

    bool expand(line& l, bool fills)
    {
        blocks::block& b = blocks_.live(l.word("a block"));
        std::size_t const bytes = l.number("bytes");
        if constexpr (expanding<A>) {
            if (!a_->try_expand(b.begin, b.asked, {bytes, b.asked.align}))
                return false;
            if (fills)
                blocks_.expanded(b, bytes);
            return true;
        }
        return false;
    }

    bool run_in_arena(const std::string& verb, const std::string& name, line& l)
    {
        if constexpr (has_marks) {
            if (verb == "mark") {
                marks_.insert_or_assign(name, spec_mark<A>{a_->mark(), blocks_.picture()});
            } else if (verb == "rewind") {
                auto const to = marks_.find(l.word("a mark"));
                hold(to != marks_.end(), "there is no such mark");
                a_->rewind(to->second.at);
                blocks_.rewind(to->second.then);
            } else if (verb == "make") {
                std::size_t const value = l.number("a value");
                must([&] { made_[name] = &a_->template make<plain_element>(value); });
            } else if (verb == "own") {
                std::size_t const value = l.number("a value");
                must([&] { made_[name] = &a_->template own<plain_element>(value); });
            } else {
                return false;
            }
            return true;
        }
        return false;
    }

    void hold_works(A& from)
    {
        layout l{40, 8};
        if constexpr (has_one_size)
            l = {from.block_bytes(), from.block_align()};
        hold(from.try_allocate(l) != nullptr, "what was moved from works");
    }

    void forget()
    {
        blocks_.forget();
        made_.clear();
    }

    ground& on_;
    std::unique_ptr<A> a_;
    blocks blocks_;
    std::map<std::string, plain_element*> made_;
    std::map<std::string, spec_mark<A>> marks_;
};

} // namespace mallard::testing::spec
