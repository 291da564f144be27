// Seals pages on Linux with one mprotect for each chunk.
#include <mallard/persist/protected_pages.hpp>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <sys/mman.h>

namespace mallard::os {
namespace {

bool set_protection(chunk c, bool sealed) noexcept
{
    return ::mprotect(c.data, c.bytes, sealed ? PROT_READ : PROT_READ | PROT_WRITE) == 0;
}

} // namespace

protected_source::protected_source(protected_source&& other) noexcept
    : page_source(static_cast<page_source&&>(other)), list_(std::exchange(other.list_, {}))
{
}

protected_source& protected_source::operator=(protected_source&& other) noexcept
{
    protected_source taken(std::move(other)); // moved out first, since `other` may be this object
    std::swap(list_, taken.list_);
    page_source::operator=(std::move(taken));
    return *this;
}

protected_source::~protected_source()
{
    if (list_.memory.data != nullptr)
        page_source(pages_options{}).give(list_.memory);
}

chunk protected_source::try_take(layout l) noexcept
{
    if (list_.sealed) {
        refuse(EPERM, "the pages are sealed: unseal() before you allocate more");
        return {};
    }
    if (!has_room_in_list())
        return {};
    chunk const taken = page_source::try_take(l);
    if (taken.data != nullptr)
        list_.begin()[list_.count++] = taken;
    return taken;
}

void protected_source::give(chunk c) noexcept
{
    chunk* place = list_.end();
    while ((--place)->data != c.data) { // search from the newest chunk
    }
    *place = list_.begin()[--list_.count];
    page_source::give(c);
}

bool protected_source::has_room_in_list() noexcept
{
    if ((list_.count + 1) * sizeof(chunk) <= list_.memory.bytes)
        return true;
    page_source plain(pages_options{});
    chunk const larger = plain.try_take({2 * list_.memory.bytes + 1});
    if (larger.data == nullptr)
        return refuse(plain.last_error(), plain.last_failure());
    std::copy(list_.begin(), list_.end(), static_cast<chunk*>(larger.data));
    if (list_.memory.data != nullptr)
        plain.give(list_.memory);
    list_.memory = larger;
    return true;
}

bool protected_source::protect(bool sealed) noexcept
{
    for (chunk* c = list_.begin(); c != list_.end(); ++c) {
        if (set_protection(*c, sealed))
            continue;
        refuse(errno, errno == ENOMEM
                          ? "the process has too many mappings, see /proc/sys/vm/max_map_count, or "
                            "the system commits no more memory to the process"
                          : "the system does not let this process change the protection of pages");
        // Undo the changes in reverse order, so that the number of mappings never exceeds the
        // number at the start of the call.
        while (c != list_.begin())
            static_cast<void>(set_protection(*--c, !sealed));
        return false;
    }
    list_.sealed = sealed;
    return true;
}

} // namespace mallard::os
