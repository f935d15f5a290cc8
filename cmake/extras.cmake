# Programs beside the library: benchmarks, examples, fuzzers. Each .c file is one program; the
# fuzzers see the library's insides, the others only its public header.
function(ls_programs folder pattern)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/${pattern}.c)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    target_link_libraries(${name} PRIVATE ${ARGN})
    set_target_properties(${name} PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${folder})
  endforeach()
endfunction()

if(TARGET lockstep_static)
  ls_programs(bench bench_* lockstep_static ls_flags)
  ls_programs(examples/library * lockstep_static)
endif()

# Plugins: shared objects that see lockstep/plugin.h alone. Those of tests/plugins have a mistake each.
function(ls_plugin name source)
  add_library(${name} MODULE ${source})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/include)
  target_compile_options(${name} PRIVATE -Wall -Wextra)
  set_target_properties(${name} PROPERTIES PREFIX "" C_STANDARD 17 C_EXTENSIONS OFF
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/plugins)
  target_compile_definitions(${name} PRIVATE ${ARGN})
endfunction()
ls_plugin(shrink ${CMAKE_SOURCE_DIR}/examples/plugin/shrink.c)
foreach(fault RANGE 0 25)
  ls_plugin(faulty_${fault} ${CMAKE_SOURCE_DIR}/tests/plugins/faulty.c FAULT=${fault})
endforeach()

# tests/fuzz/fuzz_*.c: with LOCKSTEP_FUZZ (clang) they are fuzzers; in every other build they are
# tests that read the kept inputs and a fixed number of mutations of them (tests/fuzz/replay.c).
file(GLOB fuzzers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/fuzz_*.c)
foreach(source ${fuzzers})
  get_filename_component(name ${source} NAME_WE)
  string(REPLACE "fuzz_" "" corpus ${name})
  if(LOCKSTEP_FUZZ)
    add_executable(${name} ${source})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  elseif(TARGET ls_support)
    add_executable(${name} ${source} ${CMAKE_SOURCE_DIR}/tests/fuzz/replay.c)
    file(GLOB corpus ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${corpus})
    add_test(NAME ${name} COMMAND ${name} ${corpus})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${LS_TEST_TIMEOUT}
      ENVIRONMENT "${LS_TEST_ENVIRONMENT}")
  else()
    continue()
  endif()
  target_link_libraries(${name} PRIVATE ${LS_MODULES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
endforeach()

# The tree itself.
add_test(NAME tree_includes COMMAND bash ${CMAKE_SOURCE_DIR}/tools/check_includes.sh
         ${CMAKE_SOURCE_DIR})
add_test(NAME tree_names COMMAND bash ${CMAKE_SOURCE_DIR}/tools/check_names.sh ${CMAKE_SOURCE_DIR})
add_test(NAME tree_docs COMMAND bash ${CMAKE_SOURCE_DIR}/tools/check_docs.sh ${CMAKE_SOURCE_DIR})
add_test(NAME tree_math COMMAND bash ${CMAKE_SOURCE_DIR}/tools/check_math.sh ${CMAKE_SOURCE_DIR})
add_test(NAME tree_programs COMMAND bash ${CMAKE_SOURCE_DIR}/tools/check_programs.sh
         ${CMAKE_SOURCE_DIR})
set_tests_properties(tree_programs PROPERTIES SKIP_RETURN_CODE 77)
find_program(LS_PYTHON python3)
if(LS_PYTHON)
  add_test(NAME bench_definitions COMMAND ${LS_PYTHON} -B ${CMAKE_SOURCE_DIR}/bench/definitions.py
           --check)
endif()
