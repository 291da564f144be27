# link_heaps(PROGRAM): links the code of mallard/heap.hpp into a program. Normally that code is a
# part of Mallard's malloc. Under a sanitizer, which has its own malloc, it is linked without
# malloc.
function(link_heaps program)
    if(TARGET mallard-malloc-static)
        target_link_libraries(${program} PRIVATE mallard::malloc_static)
    elseif(TARGET mallard-engine-objects)
        target_link_libraries(${program} PRIVATE mallard-engine-objects)
    else()
        message(FATAL_ERROR "${program} needs src/malloc: configure with -DMALLARD_BUILD_C=ON")
    endif()
endfunction()
