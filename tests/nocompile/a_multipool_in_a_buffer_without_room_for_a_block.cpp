// error: source_of_bytes<512, 1[0-9]+>
#include <mallard/multipool.hpp>
#include <mallard/source.hpp>

mallard::multipool<mallard::buffer<512>> memory;
