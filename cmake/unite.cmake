# Compiles several files of tests/ as one, which takes less time than one by one: the compiler reads
# headers and instantiates templates once. See tests/unite.py.

# unite(NAME [--programs] SOURCE...): makes NAME.cpp in the build folder, which has the text of all
# SOURCEs. With --programs each SOURCE is a program, and NAME.cpp runs the one that its argument names.
function(unite name)
    set(script ${PROJECT_SOURCE_DIR}/tests/unite.py)
    set(sources ${ARGN})
    list(FILTER sources EXCLUDE REGEX "^--programs$")
    add_custom_command(OUTPUT ${name}.cpp VERBATIM
        COMMAND Python3::Interpreter ${script} ${name}.cpp ${ARGN}
        DEPENDS ${script} ${sources}
        COMMENT "Uniting ${name}.cpp")
endfunction()

# divide(NAME COUNT ENTRY...): divides a list into NAME_1, NAME_2, ... of at most COUNT entries, and
# sets NAME_groups to 1 2 ...
function(divide name count)
    set(groups "")
    set(left 0)
    foreach(entry IN LISTS ARGN)
        if(left EQUAL 0)
            list(LENGTH groups group)
            math(EXPR group "${group} + 1")
            list(APPEND groups ${group})
            set(part "")
            set(left ${count})
        endif()
        list(APPEND part ${entry})
        set(${name}_${group} ${part} PARENT_SCOPE)
        math(EXPR left "${left} - 1")
    endforeach()
    set(${name}_groups ${groups} PARENT_SCOPE)
endfunction()
