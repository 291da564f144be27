"""Preloads libraries from any folder."""
import atexit
import functools
import os
import tempfile

links = []  # the folder with the links, after the first one


@functools.cache
def preloadable(library):
    """Returns a path of the library that may stand in LD_PRELOAD, where a blank or a colon would end it: the
    library's own path, or that of a link to it."""
    if not {" ", ":"} & set(library):
        return library
    if not links:
        # Few systems have a blank in the path of the folder for temporary files; /tmp has none.
        links.append(tempfile.TemporaryDirectory(dir="/tmp" if {" ", ":"} & set(tempfile.gettempdir()) else None))
        atexit.register(links[0].cleanup)
    # A link to the folder, because the library may look for others beside it.
    link = os.path.join(tempfile.mkdtemp(dir=links[0].name), "folder")
    os.symlink(os.path.dirname(os.path.abspath(library)), link)
    return os.path.join(link, os.path.basename(library))
