// The object_pool on which a program of spec/ runs, and the handles that the pool has returned.
#pragma once

#include "element.hpp"
#include "subject.hpp"

#include <mallard/object_pool.hpp>

#include <variant>

namespace mallard::testing::spec {

/// Runs the operations of a program on an object pool. The handles are boxes with `counts::none`,
/// otherwise `rc`, or `arc` for several threads.
template <class Pool>
class object_subject final : public subject {
    using T = typename Pool::value_type;
    static constexpr bool counted = Pool::shares != counts::none;
    using handle = std::conditional_t<counted, shared_handle<T, Pool>, typename Pool::box>;
    using watcher_type = std::conditional_t<counted, mallard::weak<T, Pool>, std::monostate>;

public:
    explicit object_subject(ground& on)
        : pool_(std::make_unique<Pool>(ref<failing_source>(on.source)))
    {
    }
    ~object_subject() override { let_go(); }

    bool run(const std::string& verb, const std::string& name, line& l) override
    {
        if (verb == "make") {
            handle made;
            std::size_t const value = l.number("a value");
            must([&] { made = pool_->make(value); });
            keep(name, std::move(made));
        } else if (verb == "fill") {
            std::size_t const value = l.number("a value");
            while (handle made = pool_->try_make(value))
                keep("", std::move(made));
        } else if (verb == "free") {
            hold(handles_.erase(l.word("a handle")) == 1, "there is no such handle");
        } else if (verb == "clear") {
            let_go(), pool_->clear();
        } else if (verb == "release") {
            let_go(), pool_->release();
        } else if (verb == "end") {
            let_go(), pool_.reset();
        } else if (verb == "trim") {
            pool_->trim(l.number("bytes to keep"));
        } else if (verb == "move") {
            element_book const before = elements;
            move_there_and_back(*pool_, [](Pool& from) {
                hold(from.try_make(1u) != nullptr, "what was moved from works");
            });
            elements = before;
        } else {
            return run_with_handles(verb, name, l);
        }
        return true;
    }

    bool refuses(const std::string& verb, line& l) override
    {
        if (verb == "make") {
            std::size_t const value = l.number("a value");
            hold(pool_->try_make(value) == nullptr, "try_make gives an object");
            hold(throws_bad_alloc([&] { static_cast<void>(pool_->make(value)); }),
                 "make gives an object");
            return true;
        }
        if constexpr (counted)
            if (verb == "lock") {
                hold(watcher(l).lock() == nullptr, "lock gives an owner");
                return true;
            }
        return false;
    }

    bool throws(const std::string& verb, line& l) override
    {
        if (verb == "make")
            static_cast<void>(pool_->make(l.number("a value")));
        return verb == "make";
    }

    bool expect(const std::string& name, const std::string& is, line& l) override
    {
        auto const found = places_.find(name);
        hold(found != places_.end(), "there is no " + name);
        T* const at = found->second;
        if (is == "holds") {
            hold(is_of_value(*at, l.number("a value")), "");
        } else if (is == "aligned") {
            std::size_t const align = l.number("an alignment");
            hold(reinterpret_cast<std::uintptr_t>(at) % align == 0, "");
        } else if (is == "is") {
            bool const other = l.take("not");
            auto const second = places_.find(l.word("a handle"));
            hold(second != places_.end(), "there is no such handle");
            hold((at == second->second) != other, "");
        } else {
            return false;
        }
        return true;
    }

    std::optional<std::size_t> count(const std::string& name) const override
    {
        if (name == "live")
            return pool_ == nullptr ? 0 : pool_->stats().blocks_live;
        if (name == "met") {
            std::size_t met = 0;
            pool_->for_each([&met](T&) { met += 1; });
            return met;
        }
        return {};
    }

    void verify() const override {}

private:
    void keep(const std::string& name, handle made)
    {
        T* const at = made.get();
        if (!name.empty())
            places_[name] = at;
        std::string const key = name.empty() ? " " + std::to_string(handles_.size()) : name;
        hold(handles_.emplace(key, std::move(made)).second, name + " is in use");
    }

    bool run_with_handles(const std::string& verb, const std::string& name, line& l)
    {
        if constexpr (!counted) {
            if (verb != "leak")
                return false;
            auto const node = handles_.extract(l.word("a box"));
            hold(!node.empty(), "there is no such box");
            static_cast<void>(node.mapped().leak());
        } else if (verb == "share") {
            auto const owner = handles_.find(l.word("an owner"));
            hold(owner != handles_.end(), "there is no such owner");
            keep(name, owner->second);
        } else if (verb == "watch") {
            auto const owner = handles_.find(l.word("an owner"));
            hold(owner != handles_.end(), "there is no such owner");
            watchers_.insert_or_assign(name, owner->second);
        } else if (verb == "lock") {
            handle owner = watcher(l).lock();
            hold(owner != nullptr, "the object is dead");
            keep(name, std::move(owner));
        } else if (verb == "unwatch") {
            hold(watchers_.erase(l.word("a watcher")) == 1, "there is no such watcher");
        } else {
            return false;
        }
        return true;
    }

    auto& watcher(line& l)
    {
        auto const found = watchers_.find(l.word("a watcher"));
        hold(found != watchers_.end(), "there is no such watcher");
        return found->second;
    }

    /// Drops all boxes. Called before all objects are destroyed.
    void let_go()
    {
        if constexpr (!counted)
            for (auto& [name, box] : handles_)
                static_cast<void>(box.leak());
        handles_.clear();
        watchers_.clear();
    }

    std::unique_ptr<Pool> pool_;
    std::map<std::string, handle> handles_;
    std::map<std::string, watcher_type> watchers_;
    std::map<std::string, T*> places_;
};

} // namespace mallard::testing::spec
