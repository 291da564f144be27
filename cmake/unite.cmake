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

# programs_of(FOLDER SOURCE...): sets `programs` to the GoogleTest programs that are made of the files
# of a folder, and sources_PROGRAM to the sources of each. Of every MALLARD_UNITE files one program is
# made: FOLDER-1, FOLDER-2, ... A file that defines something outside of a namespace of its own is a
# program alone, FOLDER-NAME, and so are engine_*, which link more, and those in `alone`.
#
# If MALLARD_TESTS has `unsanitized`, only those files of the folders below are built whose tests do
# something else under a sanitizer, or are skipped there: they name a sanitizer, limit the memory of a
# process, step through machine code, or walk the call stack. engine_* are built, too. See test_dev in
# tools/stages.
set(alone spec-programs stress-modules unit-interrupted unit-unwind unit-unwind_limits)
set(differs "asan|anitize|may_refuse_memory|single_step|\"unwind[.]hpp\"")
set(outside "^(namespace [a-z]|template <>|#(define|if|undef)|void\\* operator)")
function(programs_of folder)
    set(programs "")
    set(united "")
    foreach(source IN LISTS ARGN)
        cmake_path(GET source STEM name)
        set(program ${folder}-${name})
        file(STRINGS ${source} defined REGEX "${outside}")
        file(STRINGS ${source} different REGEX "${differs}")
        if(unsanitized IN_LIST MALLARD_TESTS AND folder MATCHES "^(unit|fault|c|heap)$"
           AND NOT different AND NOT name MATCHES "^engine_")
            continue()
        elseif(MALLARD_UNITE GREATER 1 AND NOT defined AND NOT name MATCHES "^engine_"
           AND NOT program IN_LIST alone)
            list(APPEND united ${source})
        else()
            list(APPEND programs ${program})
            set(sources_${program} ${source} PARENT_SCOPE)
        endif()
    endforeach()
    divide(united ${MALLARD_UNITE} ${united})
    foreach(group IN LISTS united_groups)
        unite(${folder}_${group} ${united_${group}})
        list(APPEND programs ${folder}-${group})
        set(sources_${folder}-${group} ${folder}_${group}.cpp PARENT_SCOPE)
    endforeach()
    set(programs ${programs} PARENT_SCOPE)
endfunction()
