# link_heaps(PROGRAM): links the code for mallard/heap.hpp into a program. Normally, this code is a
# part of Mallard's malloc. With a sanitizer, which has its own malloc, the code is linked without
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
