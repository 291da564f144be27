# Compiles several files of tests/ as one file. This takes less time than compiling each file alone,
# because the compiler reads headers and instantiates templates only once. See tests/unite.py.

# unite(NAME [--programs] SOURCE...): makes NAME.cpp, which contains the text of all SOURCEs, in the
# build directory. With --programs, each SOURCE is a program, and NAME.cpp runs the program that its
# argument names.
function(unite name)
    set(script ${PROJECT_SOURCE_DIR}/tests/unite.py)
    set(sources ${ARGN})
    list(FILTER sources EXCLUDE REGEX "^--programs$")
    add_custom_command(OUTPUT ${name}.cpp VERBATIM
        COMMAND Python3::Interpreter ${script} ${name}.cpp ${ARGN}
        DEPENDS ${script} ${sources}
        COMMENT "Uniting ${name}.cpp")
endfunction()

# divide(NAME COUNT ENTRY...): divides a list into lists NAME_1, NAME_2, ... of at most COUNT
# entries, and sets NAME_groups to 1 2 ...
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

# programs_of(FOLDER SOURCE...): sets `programs` to the GoogleTest programs that are made from the
# files of a directory, and sources_PROGRAM to the sources of each program. Every MALLARD_UNITE
# files are made into one program, FOLDER-1, FOLDER-2, ... Some files are made into separate
# programs, FOLDER-NAME. These are the files in `alone`, which define something outside of their own
# namespace, or which replace or limit something in the whole process, and the files engine_* and
# plan_*, which link more libraries.
set(alone
    unit-file_damage unit-interrupted unit-unwind unit-unwind_limits unit-winked
    conformance-memory_resource fault-file_arena heap-visits stress-modules
    random-adaptors random-multipool random-object_pool random-pool random-shared_multipool random-shared_pool)
function(programs_of folder)
    set(programs "")
    set(united "")
    foreach(source IN LISTS ARGN)
        cmake_path(GET source STEM name)
        set(program ${folder}-${name})
        if(MALLARD_UNITE GREATER 1 AND NOT name MATCHES "^(engine|plan)_" AND NOT program IN_LIST alone)
            list(APPEND united ${source})
        else()
            list(APPEND programs ${program})
            set(sources_${program} ${source} PARENT_SCOPE)
            set(files_${program} ${source})
        endif()
    endforeach()
    divide(united ${MALLARD_UNITE} ${united})
    foreach(group IN LISTS united_groups)
        set(program ${folder}-${group})
        unite(${folder}_${group} ${united_${group}})
        list(APPEND programs ${program})
        set(sources_${program} ${folder}_${group}.cpp PARENT_SCOPE)
        set(files_${program} ${united_${group}})
    endforeach()
    set(programs ${programs} PARENT_SCOPE)
    foreach(program IN LISTS programs)
        string(REPLACE ";" "\t" files "${files_${program}}")
        file(APPEND ${CMAKE_BINARY_DIR}/test_programs.txt "${program}\t${files}\n")
    endforeach()
endfunction()

# add_cases(PROGRAM [PREFIX [ENVIRONMENT...]]): adds a GoogleTest program as one test,
# PREFIX.PROGRAM, with environment variables. The start of a process with a sanitizer takes longer
# than most test cases, so all cases of a program share one process. The label informs `./x test`
# that the output contains the names of the cases, and with which PREFIX to print them.
function(add_cases program)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "PREFIX" "ENVIRONMENT;LABELS")
    set(test ${program})
    if(arg_PREFIX)
        set(test ${arg_PREFIX}.${program})
    endif()
    add_test(NAME ${test} COMMAND ${program})
    set_tests_properties(${test} PROPERTIES TIMEOUT 900 COST 20
        LABELS "cases:${arg_PREFIX};${arg_LABELS}" ENVIRONMENT "${arg_ENVIRONMENT}")
endfunction()
