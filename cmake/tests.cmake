# The tests.
#   tests/support/*.c                       helpers, linked to every test
#   tests/program/main.c                    the program of a folder: tests of its files by their names
#   tests/kernels/*.c                       helpers that carry out ops: one on a device, in all ways
#   tests/trainings/*.c                     helpers that use all of the library: trainings, ranks
#   tests/nets/*.prototxt                   nets of tests (tests/support/nets.h)
#   tests/unit/<folder>/test_*.c            src/<folder> (with "_" for "/") and what that uses
#   tests/unit/{monitor,cli}/test_*.c       the program's folders, on a fake library
#   tests/{numerics,compat,faults}/test_*.c all of the library, its insides too
#   tests/{numerics,compat,faults,mpi}/*.sh  the program, as $LOCKSTEP
#   tests/golden/*.c                        one program: bits held against tests/golden/table.txt
#   tests/mpi/*.c                           programs for the scripts there
# A test whose folder of src/ does not exist yet is left out. Exit code 77 is a skipped script.
pkg_check_modules(CMOCKA IMPORTED_TARGET cmocka)
if(NOT CMOCKA_FOUND)
  message(WARNING "cmocka is missing: no tests are built")
  return()
endif()

file(GLOB support CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/support/*.c)
add_library(ls_support STATIC ${support})
target_include_directories(ls_support PUBLIC ${CMAKE_SOURCE_DIR}/tests)
# Databases that tests read are made by LevelDB's own library.
find_path(LEVELDB_INCLUDE leveldb/c.h REQUIRED)
find_library(LEVELDB_LIBRARY leveldb REQUIRED)
target_include_directories(ls_support SYSTEM PUBLIC ${LEVELDB_INCLUDE})
target_link_libraries(ls_support PUBLIC ${LEVELDB_LIBRARY})
target_compile_definitions(ls_support PUBLIC LOCKSTEP_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
target_link_libraries(ls_support PUBLIC PkgConfig::CMOCKA ls_flags)
target_compile_options(ls_support PUBLIC ${LS_TEST_OPTIONS})

# Programs that have the whole library in them: the fast linker, where there is one.
include(CheckLinkerFlag)
check_linker_flag(C -fuse-ld=gold LS_LINKER_GOLD)
if(LS_LINKER_GOLD AND NOT LOCKSTEP_SANITIZE)
  target_link_options(ls_support INTERFACE -fuse-ld=gold)
endif()

set(LS_TEST_ENVIRONMENT "LOCKSTEP_SOURCE=${CMAKE_SOURCE_DIR}" "LOCKSTEP_BUILD=${CMAKE_BINARY_DIR}"
    "LOCKSTEP=${CMAKE_BINARY_DIR}/lockstep"
    "ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:allocator_may_return_null=1"
    "UBSAN_OPTIONS=print_stacktrace=1"
    "TSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/support/tsan.txt:allocator_may_return_null=1")

set(LS_TEST_TIMEOUT 900)
if(LOCKSTEP_SANITIZE)
  set(LS_TEST_TIMEOUT 1800)
endif()

# ls_add_test(NAME COMMAND...): with the environment that all tests have.
function(ls_add_test name)
  add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${LS_TEST_TIMEOUT} SKIP_RETURN_CODE 77
    ENVIRONMENT "${LS_TEST_ENVIRONMENT}")
endfunction()

# ls_test_program(NAME SOURCES LIBRARIES): an executable in the tests' folder.
function(ls_test_program name sources)
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE ls_support ${ARGN})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endfunction()

# ls_test(NAME SOURCE LIBRARIES): a program with one file of tests.
function(ls_test name source)
  ls_test_program(${name} ${source} ${ARGN})
  ls_add_test(${name} ${name})
endfunction()

# Files whose program is their own: they replace functions of other libraries or of ours, or take
# arguments.
set(LS_TESTS_ALONE
  api_test_predict base_test_atomic_file base_test_lock_file compat_test_torch faults_test_memory
  numerics_test_allocations numerics_test_forecast_bytes numerics_test_remote_device
  numerics_test_sample_state_files numerics_test_sample_states numerics_test_typed_views
  numerics_test_verify ops_cpu_test_bf16_product ops_cpu_test_device)

# ls_tests(FOLDER PATTERN LIBRARIES): a test FOLDER_test_* for each file of tests, all in one program,
# tests_FOLDER; their objects are the library ls_tests_FOLDER.
function(ls_tests folder pattern)
  file(GLOB sources CONFIGURE_DEPENDS ${pattern})
  set(parts "")
  set(list "")
  foreach(source ${sources})
    get_filename_component(stem ${source} NAME_WE)
    if(${folder}_${stem} IN_LIST LS_TESTS_ALONE)
      ls_test(${folder}_${stem} ${source} ${ARGN})
      continue()
    endif()
    list(APPEND parts ${source})
    string(APPEND list "LS_TEST_FILE(${stem})\n")
    set_source_files_properties(${source} PROPERTIES
      COMPILE_OPTIONS "-DLS_TEST_MAIN=ls_main_of_${stem};-include;${CMAKE_SOURCE_DIR}/tests/program/part.h")
    ls_add_test(${folder}_${stem} tests_${folder} ${stem})
  endforeach()
  if(NOT parts)
    return()
  endif()
  set(files ${CMAKE_BINARY_DIR}/generated/tests_${folder}.h)
  file(CONFIGURE OUTPUT ${files} CONTENT "${list}")
  add_library(ls_tests_${folder} OBJECT ${parts} ${CMAKE_SOURCE_DIR}/tests/program/main.c)
  target_link_libraries(ls_tests_${folder} PRIVATE ls_support ${ARGN})
  target_compile_definitions(ls_tests_${folder} PRIVATE LS_TEST_FILES="${files}")
  ls_test_program(tests_${folder} $<TARGET_OBJECTS:ls_tests_${folder}> ${ARGN})
endfunction()

file(GLOB kernels CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/kernels/*.c)
add_library(ls_kernels STATIC ${kernels})
target_link_libraries(ls_kernels PUBLIC ls_support ls_ops)

foreach(module ${LS_MODULES})
  string(REGEX REPLACE "^ls_" "" name ${module})
  # Those of the engine and of what it stands on choose a device, the CPU's compare it with another.
  set(more "")
  if(name MATCHES "^(ops|ops_cpu)$")
    set(more ls_kernels ls_ops)
  elseif(name MATCHES "^(transport|engine)$")
    set(more ls_ops)
  endif()
  ls_tests(${name} "${CMAKE_SOURCE_DIR}/tests/unit/${name}/test_*.c" ${module} ${more})
endforeach()

# monitor and cli are parts of the program, not of the library: their tests run on a fake of it.
file(GLOB fake CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/unit/cli/fake_*.c)
add_library(ls_program OBJECT ${fake})
target_link_libraries(ls_program PUBLIC ls_command_line)
target_include_directories(ls_program PUBLIC ${CMAKE_SOURCE_DIR}/tests/unit/cli)
foreach(folder monitor cli)
  ls_tests(${folder} "${CMAKE_SOURCE_DIR}/tests/unit/${folder}/test_*.c" ls_program)
endforeach()

# The kernels that need AMX, with tiles in plain C (tests/unit/ops_cpu/amx_model.h): beside those of
# the library, and in their place.
function(ls_amx_in_plain_c name)
  add_library(${name} OBJECT ${CMAKE_SOURCE_DIR}/src/ops/cpu/amx/bf16_product.c)
  target_link_libraries(${name} PRIVATE ls_flags)
  target_include_directories(${name} SYSTEM PRIVATE ${SLEEF_INCLUDE})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests/unit/ops_cpu)
  target_compile_options(${name} PRIVATE $<TARGET_PROPERTY:ls_amx,COMPILE_OPTIONS>)
  target_compile_definitions(${name} PRIVATE LS_ISA=avx512 LS_AMX_TILES="amx_model.h" ${ARGN})
endfunction()
if(TARGET ls_avx512_bf16)
  target_compile_definitions(ops_cpu_test_bf16_product PRIVATE LS_AVX512_BF16)
endif()
if(TARGET ls_amx)
  ls_amx_in_plain_c(ls_amx_model LS_AMX_TABLE=ls_bf16_amx_model)
  target_sources(ops_cpu_test_bf16_product PRIVATE $<TARGET_OBJECTS:ls_amx_model>)
  target_compile_definitions(ops_cpu_test_bf16_product PRIVATE LS_AMX)
  ls_amx_in_plain_c(ls_amx_served LS_AMX_TABLE=ls_bf16_amx AMX_MODEL_SERVES)
  ls_test_program(tests_ops_cpu_amx "$<TARGET_OBJECTS:ls_tests_ops_cpu>;$<TARGET_OBJECTS:ls_amx_served>"
    ls_kernels ls_ops_cpu ls_ops)
  foreach(test test_bf16_convolution test_bf16_inner_product)
    ls_add_test(ops_cpu_${test}_amx tests_ops_cpu_amx ${test})
  endforeach()
endif()

# The helpers themselves.
ls_tests(support "${CMAKE_SOURCE_DIR}/tests/unit/support/test_*.c")

file(GLOB trainings CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/trainings/*.c)
add_library(ls_trainings STATIC ${trainings})
target_link_libraries(ls_trainings PUBLIC ls_support ${LS_MODULES})

foreach(kind numerics compat faults mpi)
  ls_tests(${kind} "${CMAKE_SOURCE_DIR}/tests/${kind}/test_*.c" ls_trainings ${LS_MODULES})
  file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${kind}/*.sh)
  if(TARGET lockstep_program)
    foreach(script ${scripts})
      get_filename_component(stem ${script} NAME_WE)
      ls_add_test(${kind}_${stem} bash ${script})
    endforeach()
  endif()
endforeach()

# What the CPU's kernels are compared with gives PyTorch's losses, gradients and weights.
ls_add_test(compat_test_torch_reference compat_test_torch reference)

# Allocations, and the functions that make them, go through the test that counts them.
foreach(name ls_alloc ls_alloc_aligned ls_free ls_free_aligned ls_store_create ls_whole_create ls_sums_create
        ls_rows_cut ls_reducer_create ls_factors_create ls_factors_place ls_engine_bind ls_binding_bind)
  target_link_options(numerics_test_forecast_bytes PRIVATE -Wl,--wrap=${name})
endforeach()

# Plans are made for a device of the test's (tests/trainings/narrow_product.h).
foreach(test test_typed_views test_forecast_bytes)
  target_link_options(numerics_${test} PRIVATE -Wl,--wrap=ls_plan_build)
endforeach()

# Trainings on a device of the test's (tests/trainings/remote_device.h), and with layers of the
# test's (tests/trainings/state_layers.h).
foreach(test test_remote_device test_sample_states test_sample_state_files)
  target_link_options(numerics_${test} PRIVATE -Wl,--wrap=ls_device_find
                      -Wl,--wrap=ls_layer_type_find)
endforeach()
target_link_options(faults_test_memory PRIVATE -Wl,--wrap=ls_layer_type_find)

# System calls that fail, for scripts that preload it.
add_library(failing_calls MODULE ${CMAKE_SOURCE_DIR}/tests/faults/failing_calls.c)
set_target_properties(failing_calls PROPERTIES C_VISIBILITY_PRESET default C_EXTENSIONS ON
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
target_compile_definitions(failing_calls PRIVATE _GNU_SOURCE)

# Golden bits: one program, a test for each instruction set.
file(GLOB golden CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/golden/*.c)
add_library(ls_golden OBJECT ${golden})
target_link_libraries(ls_golden PRIVATE ls_support ${LS_MODULES})
ls_test_program(golden $<TARGET_OBJECTS:ls_golden> ${LS_MODULES})
foreach(isa sse41 avx2 avx512 avx512_bf16 reference)
  ls_add_test(golden_${isa} golden ${isa})
endforeach()

# And with AMX in plain C, where FP32 has the bits of AVX-512.
if(TARGET ls_amx)
  ls_test_program(golden_amx "$<TARGET_OBJECTS:ls_golden>;$<TARGET_OBJECTS:ls_amx_served>"
    ${LS_MODULES})
  ls_add_test(golden_amx golden_amx amx)
endif()

file(GLOB programs CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/mpi/*.c)
list(FILTER programs EXCLUDE REGEX "/test_")
foreach(source ${programs})
  get_filename_component(name ${source} NAME_WE)
  ls_test_program(${name} ${source} ls_transport)
endforeach()

# Damaged snapshots, for tools/torture.sh, whose short form is a test.
ls_test_program(flips ${CMAKE_SOURCE_DIR}/tests/torture/flips.c ls_snapshot)
if(TARGET lockstep_program)
  ls_add_test(torture bash ${CMAKE_SOURCE_DIR}/tools/torture.sh --short)
endif()

# Begun first, so that others run while these wait, and none is left for the end: seconds.
foreach(cost mpi_faults=93 faults_test_memory=77 compat_test_torch_reference=42 mpi_train_quick=40
        torture=40 mpi_train_resnet20=35 mpi_train_bf16=30 mpi_train_memory=30 mpi_cut_link=30
        mpi_audits=30 faults_failing_calls=30 faults_signals=30 compat_test_caffe=25
        compat_test_caffe_tools=25 compat_test_install=25 compat_test_demo=25)
  string(REPLACE "=" ";" cost "${cost}")
  list(GET cost 0 test)
  list(GET cost 1 seconds)
  if(TEST ${test})
    set_tests_properties(${test} PROPERTIES COST ${seconds})
  endif()
endforeach()
