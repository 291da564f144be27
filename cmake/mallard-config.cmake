# find_package(mallard) reads this file. It defines the targets of the installed components:
#
#   core persist trace   mallard::core, mallard::persist, mallard::trace
#   all                  mallard::mallard
#   c                    mallard::c, mallard::c_static
#   malloc               mallard::malloc, mallard::malloc_static
#
# find_package(mallard COMPONENTS c malloc) fails if one of these components is not installed.
foreach(component core persist trace all c malloc)
    set(mallard_${component}_FOUND FALSE)
    if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/mallard-${component}.cmake)
        include(${CMAKE_CURRENT_LIST_DIR}/mallard-${component}.cmake)
        set(mallard_${component}_FOUND TRUE)
    endif()
endforeach()
foreach(component IN LISTS mallard_FIND_COMPONENTS)
    if(mallard_FIND_REQUIRED_${component} AND NOT mallard_${component}_FOUND)
        set(mallard_FOUND FALSE)
        set(mallard_NOT_FOUND_MESSAGE
            "Mallard's component '${component}' is not installed: cmake --install BUILD --component ${component}")
    endif()
endforeach()
