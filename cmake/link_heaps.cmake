# link_heaps(PROGRAM): links heaps, which are declared in mallard/heap.hpp, into a program: as a part
# of malloc, or without malloc under a sanitizer, which has its own.
function(link_heaps program)
    if(TARGET mallard-malloc-static)
        target_link_libraries(${program} PRIVATE mallard::malloc_static)
    elseif(TARGET mallard-engine-objects)
        target_link_libraries(${program} PRIVATE mallard-engine-objects)
    else()
        message(FATAL_ERROR "${program} needs src/malloc: configure with -DMALLARD_BUILD_C=ON")
    endif()
endfunction()
