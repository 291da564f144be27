// The slot_map on which a program of spec/ runs, and the keys that the map has returned.
#pragma once

#include "element.hpp"
#include "subject.hpp"

#include <mallard/slot_map.hpp>

namespace mallard::testing::spec {

/// Runs the operations of a program on a slot map. Each access verifies that the element has not
/// moved.
template <class Map>
class key_subject final : public subject {
    using key_type = typename Map::key_type;

    struct entry {
        key_type key;
        plain_element* at;
    };

public:
    explicit key_subject(ground& on) : map_(std::make_unique<Map>(ref<failing_source>(on.source)))
    {
    }

    bool run(const std::string& verb, const std::string& name, line& l) override
    {
        if (verb == "insert") {
            std::size_t const value = l.number("a value");
            key_type k;
            must([&] { k = map_->emplace(value); });
            keep(name, k);
        } else if (verb == "fill") {
            std::size_t const value = l.number("a value");
            while (map_->try_emplace(value))
                continue;
        } else if (verb == "erase") {
            hold(map_->erase(known(l).key), "it was gone");
        } else if (verb == "remove") {
            hold(map_->remove(known(l).key).has_value(), "it was gone");
        } else if (verb == "detach") {
            hold(map_->detach(known(l).key).has_value(), "it was gone");
        } else if (verb == "reattach") {
            entry& e = known(l);
            e.at = map_->reattach(e.key, plain_element(l.number("a value")));
            hold(e.at != nullptr, "it was not detached");
        } else if (verb == "clear") {
            map_->clear();
        } else if (verb == "end") {
            map_.reset();
        } else if (verb == "move") {
            element_book const before = elements;
            move_there_and_back(*map_, [](Map& from) {
                hold(static_cast<bool>(from.try_emplace(1u)), "what was moved from works");
            });
            elements = before;
        } else {
            return false;
        }
        return true;
    }

    bool refuses(const std::string& verb, line& l) override
    {
        if (verb == "insert") {
            std::size_t const value = l.number("a value");
            hold(!map_->try_emplace(value), "try_emplace gives a key");
            hold(throws_bad_alloc([&] { static_cast<void>(map_->emplace(value)); }),
                 "emplace gives a key");
        } else if (verb == "erase") {
            hold(!map_->erase(known(l).key), "it was there");
        } else if (verb == "remove") {
            hold(!map_->remove(known(l).key), "it was there");
        } else if (verb == "detach") {
            hold(!map_->detach(known(l).key), "it was there");
        } else if (verb == "reattach") {
            element_book const before = elements;
            hold(map_->reattach(known(l).key, plain_element(1)) == nullptr, "it was detached");
            elements = before;
        } else {
            return false;
        }
        return true;
    }

    bool throws(const std::string& verb, line& l) override
    {
        if (verb == "insert")
            static_cast<void>(map_->emplace(l.number("a value")));
        return verb == "insert";
    }

    bool expect(const std::string& name, const std::string& is, line& l) override
    {
        entry const& e = known(name);
        if (is == "holds") {
            plain_element const* const at = map_->get(e.key);
            hold(at != nullptr && at->value == l.number("a value"), "");
            hold(at == e.at, "an element stays where it is");
        } else if (is == "gone") {
            hold(map_->get(e.key) == nullptr && !map_->contains(e.key), "");
        } else if (is == "is") {
            bool const other = l.take("not");
            hold((e.key == known(l).key) != other, "");
        } else if (is == "in_place_of") {
            hold(e.key.index() == known(l).key.index(), "");
        } else {
            return false;
        }
        return true;
    }

    std::optional<std::size_t> count(const std::string& name) const override
    {
        if (name == "live")
            return map_ == nullptr ? 0 : map_->size();
        if (name == "retired")
            return map_->retired();
        if (name == "met") {
            std::size_t met = 0;
            map_->for_each([&met](key_type, const plain_element&) { met += 1; });
            return met;
        }
        return {};
    }

    void verify() const override
    {
        for (auto const& [name, e] : by_name_)
            if (plain_element const* const at = map_ == nullptr ? nullptr : map_->get(e.key))
                hold(at == e.at, "an element stays where it is");
    }

private:
    void keep(const std::string& name, key_type k)
    {
        hold(static_cast<bool>(k), "a key that was given is not null");
        by_name_[name] = {k, map_->get(k)};
    }
    entry& known(const std::string& name)
    {
        auto const found = by_name_.find(name);
        hold(found != by_name_.end(), "there is no key " + name);
        return found->second;
    }
    entry& known(line& l) { return known(l.word("a key")); }

    std::unique_ptr<Map> map_;
    std::map<std::string, entry> by_name_;
};

} // namespace mallard::testing::spec
