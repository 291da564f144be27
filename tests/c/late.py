#!/usr/bin/env python3
"""Opens the library in a running program that already has threads, and calls the library from them.
Each thread must have room for the library's thread-local data. `late.py LIBRARY.so`
"""
import ctypes
import errno
import re
import subprocess
import sys
import threading

skipped = 77
thread_cached = 3


class Options(ctypes.Structure):
    """The first members of mallard_pool_options, as an older caller knows them."""
    _fields_ = [("struct_bytes", ctypes.c_size_t), ("block_bytes", ctypes.c_size_t),
                ("align", ctypes.c_size_t), ("growth", ctypes.c_int), ("sync", ctypes.c_int),
                ("reuse", ctypes.c_int), ("check", ctypes.c_int)]


def main(path):
    symbols = subprocess.run(["nm", "-D", path], capture_output=True, text=True, check=True).stdout
    if re.search("__(asan|tsan|ubsan)_", symbols):
        print("skipped: a program cannot load the runtime of a sanitizer late")
        return skipped
    opened, faults = threading.Barrier(5), []

    def use():
        opened.wait()  # the thread started before the library was loaded
        pool = library.mallard_pool_create(ctypes.byref(Options(40, 48, 24)))
        text = ctypes.create_string_buffer(512)
        if pool or ctypes.get_errno() != errno.EINVAL:
            faults.append("an alignment of 24 is accepted")
        if not library.mallard_explain(text, 512).startswith(b"mallard_pool_create: align is 24"):
            faults.append(f"no explanation, but {text.value}")
        blocks = [library.mallard_pool_allocate(shared) for _ in range(1000)]
        if len(set(blocks)) != 1000 or None in blocks:
            faults.append("blocks are not apart")
        for block in blocks:
            library.mallard_pool_free(shared, block)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    library = ctypes.CDLL(path, use_errno=True)
    for name in ("mallard_pool_create", "mallard_pool_allocate"):
        getattr(library, name).restype = ctypes.c_void_p
    for name in ("mallard_pool_allocate", "mallard_pool_destroy"):
        getattr(library, name).argtypes = [ctypes.c_void_p]
    library.mallard_pool_free.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    library.mallard_explain.restype = ctypes.c_char_p
    shared = library.mallard_pool_create(ctypes.byref(Options(40, 48, 0, 0, thread_cached)))
    opened.wait()
    for thread in threads:
        thread.join()
    library.mallard_pool_destroy(shared)
    print("\n".join(faults), end="\n" if faults else "")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
