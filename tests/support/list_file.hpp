// A small file arena with a list, for tests that read and extend a file.
#pragma once

#include "files.hpp"

#include <mallard/persist/offset_ptr.hpp>

#include <gtest/gtest.h>

namespace mallard::testing {

/// A linked list that is valid at any address.
struct list {
    struct node {
        int key;
        mallard::offset_ptr<node> next;
    };
    mallard::offset_ptr<node> first;

    void push(file_arena& file, int key) { first = &file.make<node>(key, first); }
    int sum() const
    {
        int result = 0;
        for (node* n = first.get(); n != nullptr; n = n->next.get())
            result += n->key;
        return result;
    }
};

/// A temporary directory with one file, which contains a list with the keys 1, 2 and 3.
struct with_list {
    temporary_folder folder;
    std::string path = folder / "list";

    with_list()
    {
        file_arena file;
        EXPECT_TRUE(file.open(path.c_str())) << file.last_failure();
        list* const keys = file.root_or_make<list>();
        for (int key : {1, 2, 3})
            keys->push(file, key);
        EXPECT_TRUE(file.commit()) << file.last_failure();
    }
    int sum() const
    {
        file_arena file;
        EXPECT_TRUE(file.open(path.c_str(), {.access = file_access::read})) << file.last_failure();
        list const* const keys = file.root<list>();
        return keys == nullptr ? -1 : keys->sum();
    }
};

} // namespace mallard::testing
