// Runs a program of spec/ with one set of options, which is called a manner.
#pragma once

#include "element.hpp"
#include "subject.hpp"

#include <functional>

namespace mallard::testing::spec {

class program {
public:
    /// Makes the allocator that a line names, or returns null for an unknown `kind`.
    using maker = std::function<std::unique_ptr<subject>(const std::string& kind, line&, ground&,
                                                         const manner&)>;

    program(maker make, const manner& how) : make_(std::move(make)), manner_(how) {}

    /// Runs the program. Returns the empty string, or a failure with its reason: `spec/arena.ops:8:
    /// failed: expect c is b`.
    std::string run(const std::string& path, std::istream& text)
    {
        std::size_t number = 0;
        std::string here = "its end";
        try {
            for (std::string written; std::getline(text, written);) {
                number += 1;
                here = trimmed(written);
                doing = path + ":" + std::to_string(number) + ": " + here;
                line l(written, ground_->named);
                if (!l.empty())
                    step(l);
            }
            here = "its end";
            end();
        } catch (const broken& b) {
            subject_.reset();
            return path + ":" + std::to_string(number) + ": failed: " + here +
                   (b.why.empty() ? "" : "\n  " + b.why) + "\n  in this manner: " + manner_.name;
        }
        return {};
    }

private:
    static std::string trimmed(const std::string& written)
    {
        std::string const code = written.substr(0, written.find('#'));
        std::size_t const first = code.find_first_not_of(' ');
        return first == std::string::npos
                   ? ""
                   : code.substr(first, code.find_last_not_of(' ') + 1 - first);
    }

    void step(line& l)
    {
        if (l.take("in"))
            return in_language(l);
        if (l.take("repeat"))
            return repeat(l);
        if (l.take("fail"))
            return fail(l);
        if (l.take("expect"))
            return expect(l);
        if (l.take("refuses"))
            return refuses(l);
        if (l.take("throws"))
            return throws(l);
        if (l.take("attempt"))
            return attempt(l);
        std::string const name = l.result();
        std::string const verb = l.word("a verb");
        hold(!count(name), name + " is the name of a count");
        if (name.empty() && begin(verb, l))
            return;
        if (std::optional<std::size_t> const n = count(verb); n && !name.empty())
            ground_->named[name] = *n;
        else
            hold(about().run(verb, name, l), "there is no verb " + verb + " here");
        l.end();
    }

    void in_language(line& l)
    {
        std::string const language = l.word("a language");
        hold(language == "c++" || language == "rust", "there is no language " + language);
        if (language == "c++")
            step(l);
    }

    void repeat(line& l)
    {
        std::size_t const times = l.number("how often");
        hold(times != 0, "a line is repeated once at least");
        for (std::size_t i = 0; i < times; ++i) {
            line again = l;
            step(again);
        }
    }

    void fail(line& l)
    {
        if (l.take("after"))
            ground_->source.fail_from(l.number("requests") + 1);
        else if (l.take("above"))
            ground_->source.fail_above(l.number("bytes"));
        else if (l.take("never"))
            ground_->source.fail_never();
        else
            throw broken{"it fails after, above or never"};
        l.end();
    }

    void expect(line& l)
    {
        std::string const name = l.word("what is expected");
        std::string const is = l.word("what it is");
        if (std::optional<std::size_t> const n = count(name))
            hold(compares(*n, is, l), name + " is " + std::to_string(*n));
        else
            hold(about().expect(name, is, l), "there is no expectation " + is + " here");
        l.end();
    }

    bool compares(std::size_t n, const std::string& is, line& l)
    {
        bool const other = is == "is" && l.take("not");
        std::size_t const m = l.number("a number");
        if (is == "is")
            return (n == m) != other;
        if (is == "<")
            return n < m;
        if (is == "<=")
            return n <= m;
        if (is == ">")
            return n > m;
        if (is == ">=")
            return n >= m;
        throw broken{"there is no comparison " + is};
    }

    void refuses(line& l)
    {
        std::string const verb = l.word("a verb");
        unchanged([&] { return about().refuses(verb, l); }, verb);
        l.end();
    }

    void throws(line& l)
    {
        std::string const verb = l.word("a verb");
        elements.throws = true;
        bool thrown = false;
        unchanged(
            [&] {
                try {
                    return about().throws(verb, l);
                } catch (const element_refused&) {
                    return thrown = true;
                }
            },
            verb);
        elements.throws = false;
        hold(thrown, "nothing was thrown");
        l.end();
    }

    /// Runs a line whose call may fail, and verifies that a failed call has changed no live block
    /// or object.
    void attempt(line& l)
    {
        auto const before = lives();
        try {
            step(l);
        } catch (const refused&) {
            hold(lives() == before, "what lives has changed");
        }
    }

    /// Verifies that a failed call has changed nothing.
    template <class Call>
    void unchanged(Call call, const std::string& verb)
    {
        auto const before = lives();
        auto const taken = count("taken"), chunks = count("chunks");
        hold(call(), verb + " cannot fail so here");
        subject_->verify();
        hold(lives() == before, "what lives has changed");
        hold(count("taken") == taken, "it has taken memory, or given some back");
        hold(count("chunks") == chunks, "it has taken a chunk, or given one back");
    }
    std::pair<std::optional<std::size_t>, std::optional<std::size_t>> lives() const
    {
        return {count("live"), count("dropped")};
    }

    /// Replaces the allocator by a new one of this `kind`. Returns false if `kind` is no allocator.
    bool begin(const std::string& kind, line& l)
    {
        auto next_ground = std::make_unique<ground>();
        std::unique_ptr<subject> next = make_(kind, l, *next_ground, manner_);
        if (next == nullptr)
            return false;
        l.end();
        end();
        subject_ = std::move(next);
        ground_ = std::move(next_ground);
        elements = {};
        return true;
    }

    void end()
    {
        if (subject_ != nullptr)
            subject_->verify();
        subject_.reset();
        hold(ground_->source.bytes() == 0, "all is given back in the end");
    }

    subject& about()
    {
        hold(subject_ != nullptr, "there is no allocator yet");
        return *subject_;
    }

    std::optional<std::size_t> count(const std::string& name) const
    {
        if (name == "taken")
            return ground_->source.bytes();
        if (name == "chunks")
            return ground_->source.live().size();
        if (name == "calls")
            return ground_->source.calls();
        if (name == "dropped")
            return elements.dropped;
        if (name == "last")
            return elements.last;
        return subject_ == nullptr ? std::nullopt : subject_->count(name);
    }

    maker make_;
    manner manner_;
    std::unique_ptr<ground> ground_ = std::make_unique<ground>();
    std::unique_ptr<subject> subject_;
};

} // namespace mallard::testing::spec
