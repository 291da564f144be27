"""Preloads libraries from directories whose path LD_PRELOAD cannot contain."""
import atexit
import functools
import os
import tempfile

links = []  # the directory with the links, after the first one is made


@functools.cache
def preloadable(library):
    """Returns a path of the library that LD_PRELOAD can contain. A blank or a colon would end a path in
    LD_PRELOAD, so the result is the library's own path, or else that of a link to the library."""
    if not {" ", ":"} & set(library):
        return library
    if not links:
        # The path of the directory for temporary files may have a blank or a colon; /tmp has none.
        links.append(tempfile.TemporaryDirectory(dir="/tmp" if {" ", ":"} & set(tempfile.gettempdir()) else None))
        atexit.register(links[0].cleanup)
    # Links to the directory, because the library may look for other libraries next to itself.
    link = os.path.join(tempfile.mkdtemp(dir=links[0].name), "folder")
    os.symlink(os.path.dirname(os.path.abspath(library)), link)
    return os.path.join(link, os.path.basename(library))
