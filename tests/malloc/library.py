#!/usr/bin/env python3
"""Checks the file of a malloc library, without running it.

    library.py needs LIBRARY.so         nothing but the C library
    library.py size LIBRARY.so          at most 100 KiB to load
    library.py segments LIBRARY.so      nothing that is writable and executable
    library.py names LIBRARY.so         exports the family, mallard_*, and nothing else
    library.py versions LIBRARY.so      mallard_* have a version; the family has none, as a preload needs
    library.py static PROGRAM           contains a malloc other than that of glibc
    library.py calls PROGRAM ARGUMENT   dies, and its help line has the address of each printed call
"""
import os
import re
import subprocess
import sys

bytes_max = 100 * 1024
version = "MALLARD_0.1"
family = """malloc free calloc realloc reallocarray posix_memalign aligned_alloc memalign valloc
    pvalloc malloc_usable_size free_sized free_aligned_sized cfree malloc_trim mallinfo mallinfo2
    mallopt malloc_stats malloc_info __libc_malloc __libc_free __libc_calloc __libc_realloc
    __libc_memalign __libc_valloc __libc_pvalloc""".split()
aligned = "St11align_val_t"
news = [f"_Z{of}m{align}{nothrow}" for of in ("nw", "na") for align in ("", aligned)
        for nothrow in ("", "RKSt9nothrow_t")]
deletes = [f"_Z{of}Pv{how}" for of in ("dl", "da")
           for how in ("", "m", aligned, "m" + aligned, "RKSt9nothrow_t", aligned + "RKSt9nothrow_t")]


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def needs(library):
    return [f"{name}: is needed" for name in re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "-dW", library))
            if not re.match(r"(libc|ld-linux[^.]*)\.so", name)]


def size(library):
    # The bytes that a process maps. The file also has gaps: GNU ld begins the writable part at a page, and lld
    # does not.
    loaded = re.findall(r"^ +LOAD +0x\S+ 0x\S+ 0x\S+ (0x\S+)", output("readelf", "-lW", library), re.M)
    count = sum(int(part, 16) for part in loaded)
    # Protections that are on by default in g++ 13 of Ubuntu 24.04 take 8 % more: -fcf-protection and
    # -fstack-protector.
    is_protected = "__stack_chk_fail" in output("nm", "--dynamic", library)
    limit = bytes_max * 11 // 10 if is_protected else bytes_max
    print(f"{count} bytes")
    return [f"{count} bytes, at most {limit}"] if count > limit or not loaded else []


def segments(library):
    found = re.findall(r"^ +(\S+) +0x\S+ 0x\S+ 0x\S+ 0x\S+ 0x\S+ (R?) ?(W?) ?(E?)",
                       output("readelf", "-lW", library), re.M)
    return [f"{kind}: is writable and executable" for kind, _, w, e in found if w and e]


def names(library):
    shown = {line.split()[-1].split("@")[0]
             for line in output("nm", "-D", "--defined-only", library).splitlines()
             if line.split()[-2] != "A"}
    wanted = {*family, *news, *deletes}
    # Further names that the library may export: Mallard's own functions, aliases for older programs, and a dlopen
    # that clears RTLD_DEEPBIND.
    others = re.compile(r"dlopen|mallard_\w+|__posix_memalign|__libc_\w+|malloc_\w+|memalign_\w+")
    return ([f"{name}: is not there" for name in sorted(wanted - shown)] +
            [f"{name}: is shown" for name in sorted(shown - wanted) if not others.fullmatch(name)])


def versions(library):
    shown = [line.split() for line in output("nm", "-D", "--defined-only", library).splitlines()]
    shown = {name.split("@")[0]: name.partition("@")[2] for _, kind, name in shown if kind != "A"}
    own = {name for name in shown if name.startswith("mallard_")}
    return ([f"{name}: its version is '{shown[name]}', not {version}" for name in sorted(own)
             if shown[name] != f"@{version}"] +
            [f"{name}: has the version {shown[name]}, so a preload would not replace it"
             for name in sorted(shown.keys() - own) if shown[name]] +
            ([] if own else ["no mallard_* is shown"]))


def static(program):
    symbols = set(re.findall(r" [TtWwi] (\S+)$", output("nm", program), re.M))
    return [f"{name}: is of glibc's malloc" for name in sorted({"_int_malloc", "_int_free"} & symbols)]


def calls(program, *arguments):
    said = subprocess.run([program, *arguments], capture_output=True, text=True).stderr
    helped = set(re.findall(r" (0x[0-9a-f]+)\b", said.splitlines()[-1]))
    told = re.findall(r"    (\w+) by .*/" + os.path.basename(program) + r"\+(0x[0-9a-f]+)", said)
    return ([f"{call}: not among those of the help line:\n{said}" for _, call in told if call not in helped] +
            [f"{what} by nobody:\n{said}" for what in ("allocated", "freed") if what not in dict(told)])


def main(what, file, *arguments):
    faults = {f.__name__: f for f in (needs, size, segments, names, versions, static, calls)}[what](file, *arguments)
    print("\n".join(faults), end="\n" if faults else "")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
