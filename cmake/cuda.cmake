# The device of NVIDIA's cards: a module, liblockstep_cuda.so, that the program loads when it is asked
# for. What its kernels compute is tested on the CPU, for which a C++ compiler is enough; what calls CUDA
# needs the toolkit's headers, and is tested with a fake runtime, in a module of the same host code that
# stands in for it.
# All of it is a part of `cards`, not of `all`, but for the module where it was asked for (ON) or where
# this machine has a card; tests have the label `cards`, and ./run cards builds and runs them.
get_property(others DIRECTORY PROPERTY BUILDSYSTEM_TARGETS)
get_property(other_tests DIRECTORY PROPERTY TESTS)
include(CheckLanguage)
set(LOCKSTEP_CUDA AUTO CACHE STRING "The device of NVIDIA's cards: AUTO (where its toolkit is), ON, OFF")
set_property(CACHE LOCKSTEP_CUDA PROPERTY STRINGS AUTO ON OFF)
check_language(CXX)
if(CMAKE_CXX_COMPILER)
  enable_language(CXX)
endif()

# ---- What is there ----------------------------------------------------------------------------------

# Tells what keeps the module from being built.
function(ls_cuda_lacks text)
  if(LOCKSTEP_CUDA STREQUAL "ON")
    message(FATAL_ERROR "LOCKSTEP_CUDA is ON, but ${text}")
  endif()
  message(STATUS "The device of NVIDIA's cards is left out: ${text}")
endfunction()

# ls_cuda_library(NAME HEADER LIBRARY): LS_<NAME>_INCLUDE and LS_<NAME>_LIBRARY, in the toolkit's places,
# in Debian's, and where <NAME>_ROOT points; LS_CUDA_HAS_<NAME> is true where both are there.
function(ls_cuda_library name header library)
  file(GLOB toolkits /usr/local/cuda /usr/local/cuda-*)
  list(TRANSFORM toolkits APPEND /include OUTPUT_VARIABLE includes)
  list(TRANSFORM toolkits APPEND /lib64 OUTPUT_VARIABLE folders)
  find_path(LS_${name}_INCLUDE ${header} HINTS ${${name}_ROOT}/include ${CUDAToolkit_INCLUDE_DIRS}
            PATHS ${includes})
  find_library(LS_${name}_LIBRARY ${library} HINTS ${${name}_ROOT}/lib ${CUDAToolkit_LIBRARY_DIR}
               PATHS ${folders})
  set(found FALSE)
  if(LS_${name}_INCLUDE AND LS_${name}_LIBRARY)
    set(found TRUE)
  endif()
  set(LS_CUDA_HAS_${name} ${found} PARENT_SCOPE)
endfunction()

if(NOT LOCKSTEP_CUDA STREQUAL "OFF")
  find_package(CUDAToolkit QUIET)
  ls_cuda_library(CUDNN cudnn.h cudnn)
  ls_cuda_library(CUBLASLT cublasLt.h cublasLt)
  ls_cuda_library(NCCL nccl.h nccl)
  if(LS_CUDA_HAS_CUDNN) # version 9 is the first with the graph API that is used
    file(STRINGS ${LS_CUDNN_INCLUDE}/cudnn_version.h version REGEX "define CUDNN_MAJOR")
    if(NOT version MATCHES "([0-9]+)$" OR CMAKE_MATCH_1 LESS 9)
      message(STATUS "cuDNN in ${LS_CUDNN_INCLUDE} is older than version 9, and not used")
      set(LS_CUDA_HAS_CUDNN FALSE)
    endif()
  endif()
endif()
set(LS_CUDA_LIBRARIES CUDNN CUBLASLT NCCL)

# ---- Kernels on the CPU -----------------------------------------------------------------------------

file(GLOB kernels CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ops/cuda/kernels/*.cu)
# ls_stand_in(NAME SOURCES...): C++ of the tests.
function(ls_stand_in name)
  add_library(${name} STATIC ${ARGN})
  target_compile_features(${name} PRIVATE cxx_std_17)
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wshadow -ffp-contract=off -fno-math-errno)
  target_compile_definitions(${name} PRIVATE LS_CUDA_STAND_IN="cuda/grid.h")
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include
                             ${CMAKE_SOURCE_DIR}/tests)
  if(CUDAToolkit_FOUND)
    target_include_directories(${name} SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  endif()
endfunction()

if(CMAKE_CXX_COMPILER)
  set_source_files_properties(${kernels} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "-xc++")
  ls_stand_in(ls_cuda_grid ${kernels} ${CMAKE_SOURCE_DIR}/tests/cuda/grid.cc)
  # A vector that does not lie as a card wants it ends the test.
  target_compile_options(ls_cuda_grid PRIVATE -fsanitize=alignment
    $<IF:$<CXX_COMPILER_ID:GNU>,-fsanitize-undefined-trap-on-error,-fsanitize-trap=alignment>)
  ls_stand_in(ls_cuda_immediate ${CMAKE_SOURCE_DIR}/tests/cuda/immediate.cc)
  target_link_libraries(ls_cuda_immediate PUBLIC ls_cuda_grid)
  ls_test(cuda_test_products ${CMAKE_SOURCE_DIR}/tests/cuda/test_products.c ls_kernels ls_ops
    ls_cuda_immediate)
  ls_test(cuda_test_contract ${CMAKE_SOURCE_DIR}/tests/cuda/test_contract.c ls_device
    ls_cuda_immediate)
  ls_test(cuda_test_samples ${CMAKE_SOURCE_DIR}/tests/cuda/test_samples.c ls_data ls_cuda_immediate)
endif()

# ---- The host's code, and the fake that it is tested with ---------------------------------------------

if(CMAKE_CXX_COMPILER AND CUDAToolkit_FOUND)
  file(GLOB host CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ops/cuda/*.c)
  if(NOT LS_CUDA_HAS_NCCL) # cards exchange over the host's memory
    list(FILTER host EXCLUDE REGEX "/nccl\\.c$")
  endif()
  if(NOT LS_CUDA_HAS_CUBLASLT) # products have kernels of our own
    list(FILTER host EXCLUDE REGEX "/cublaslt[^/]*\\.c$")
  endif()
  if(NOT LS_CUDA_HAS_CUDNN) # convolutions are computed by kernels of our own
    list(FILTER host EXCLUDE REGEX "/cudnn[a-z_]*\\.c$")
  endif()
  add_library(ls_cuda_host STATIC ${host})
  target_link_libraries(ls_cuda_host PUBLIC ls_device)
  target_include_directories(ls_cuda_host SYSTEM PUBLIC ${CUDAToolkit_INCLUDE_DIRS})
  target_compile_definitions(ls_cuda_host PRIVATE LS_LAYOUTS_OF_PROGRAM) # ir/layout.h
  file(GLOB fake CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/cuda/fake/*.cc)
  ls_stand_in(ls_cuda_fake ${fake})
  foreach(library ${LS_CUDA_LIBRARIES})
    if(LS_CUDA_HAS_${library})
      foreach(target ls_cuda_host ls_cuda_fake)
        target_compile_definitions(${target} PUBLIC LS_CUDA_HAS_${library}=1)
        target_include_directories(${target} SYSTEM PUBLIC ${LS_${library}_INCLUDE})
      endforeach()
    endif()
  endforeach()
  # Mutants (cmake/mutants.cmake): the device's sources with mistakes are compiled once more.
  set(mutated "")
  foreach(source card nccl cublaslt_product cudnn_engine cudnn_ops cudnn_plans)
    if(${CMAKE_SOURCE_DIR}/src/ops/cuda/${source}.c IN_LIST host)
      list(APPEND mutated ${CMAKE_SOURCE_DIR}/src/ops/cuda/${source}.c)
    endif()
  endforeach()
  add_library(ls_card_mutants OBJECT ${mutated})
  target_link_libraries(ls_card_mutants PRIVATE ls_cuda_host)
  target_compile_definitions(ls_card_mutants PRIVATE LS_MUTANTS LS_LAYOUTS_OF_PROGRAM)
  # ls_card_mutants(NAME SOURCES LIBRARIES): a program of tests with them, cuda_mutants_NAME.
  function(ls_card_mutants name sources)
    ls_test_program(cuda_mutants_${name} "${sources};$<TARGET_OBJECTS:ls_card_mutants>" ${ARGN}
      ls_cuda_host ls_cuda_fake)
    target_link_options(cuda_mutants_${name} PRIVATE -Wl,--undefined=ls_test_path) # reads the filter
  endfunction()
  # The fake may abort the program, which is not what CTest looks for text in.
  function(ls_card_mutant name program filter expression)
    string(TOLOWER cuda_mutant_${name} test)
    ls_mutant_test(${test} ${name} "" ${filter} "${expression}" sh -c "\"$0\" || exit 1"
      $<TARGET_FILE:cuda_mutants_${program}>)
  endfunction()
  if(LS_CUDA_HAS_CUBLASLT)
    set(test ${CMAKE_SOURCE_DIR}/tests/cuda/test_cublaslt.c)
    ls_test(cuda_test_cublaslt ${test} ls_kernels ls_ops ls_cuda_host ls_cuda_fake)
    # Mutants: sums are split, and added up in the order in which parts arrive; arrays are said to be
    # more aligned than they are.
    ls_card_mutants(cublaslt "${test}" ls_kernels ls_ops)
    ls_card_mutant(SPLIT cublaslt bits_* "the product has other bits")
    ls_card_mutant(ALIGNED cublaslt bits_* "of layer 'ip': cuBLASLt: an unsupported value")
  endif()
  if(LS_CUDA_HAS_NCCL)
    ls_test(cuda_test_exchange ${CMAKE_SOURCE_DIR}/tests/cuda/test_exchange.c ls_cuda_host
      ls_cuda_fake)
    ls_test(cuda_test_card_ranks ${CMAKE_SOURCE_DIR}/tests/cuda/test_card_ranks.c ls_trainings
      ${LS_MODULES} ls_cuda_host ls_cuda_fake)
    target_link_options(cuda_test_card_ranks PRIVATE -Wl,--wrap=ls_device_find)
    ls_test(cuda_test_card_data ${CMAKE_SOURCE_DIR}/tests/cuda/test_card_data.c ls_trainings
      ${LS_MODULES} ls_cuda_host ls_cuda_fake)
    target_link_options(cuda_test_card_data PRIVATE -Wl,--wrap=ls_device_find)
    ls_test(cuda_test_card_plan ${CMAKE_SOURCE_DIR}/tests/cuda/test_card_plan.c ls_trainings
      ${LS_MODULES} ls_cuda_host ls_cuda_fake)
    target_link_options(cuda_test_card_plan PRIVATE -Wl,--wrap=ls_device_find)
    # Many small trainings.
    function(ls_card_trainings name source)
      ls_test(${name} ${CMAKE_SOURCE_DIR}/tests/cuda/${source} ls_trainings ${LS_MODULES}
        ls_cuda_host ls_cuda_fake)
      target_sources(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests/cuda/card_trainings.c ${ARGN})
      target_link_options(${name} PRIVATE -Wl,--wrap=ls_device_find)
    endfunction()
    ls_card_trainings(cuda_test_card_orders test_card_orders.c)
    ls_card_trainings(cuda_test_card_failures test_card_failures.c)
    # Mutants of what streams still read or have not done yet.
    foreach(test card_data card_ranks)
      ls_card_mutants(${test} "${CMAKE_SOURCE_DIR}/tests/cuda/test_${test}.c;$<TARGET_OBJECTS:ls_mutants>"
        ls_trainings ${LS_MODULES})
      target_link_options(cuda_mutants_${test} PRIVATE -Wl,--wrap=ls_device_find)
    endforeach()
    # Inputs are overwritten before they were read, read before they are there, or released before
    # they were copied; what kernels are told changes before it was copied.
    set(data card_data any_way_of_data_gives_same_bits)
    set(differs "free, [a-z ]*, seed [0-9]: the snapshots differ from byte")
    set(changed "of the host, which changed before it was made")
    ls_card_mutant(OVERWRITES ${data} ${differs})
    ls_card_mutant(AHEAD ${data} ${differs})
    ls_card_mutant(RETOLD ${data} ${changed})
    ls_card_mutant(RELEASED ${data} ${changed})
    # The host reads what an update saw, and what sums saw, before the stream has copied it.
    ls_card_mutant(GLANCES ${data} "the update made a weight that is not")
    ls_card_mutant(HURRIES ${data} "reports a gradient of micro-batch -1")
    # No event is recorded, or none that says which sums, or factors, are there.
    ls_card_mutant(SILENT ${data} ${changed})
    ls_card_mutant(UNMARKED card_ranks any_cards_give_same_bits
      "ranks, seed [0-9]: the snapshots differ from byte")
    ls_card_mutant(UNHEARD card_ranks
      exchanges_of_factors_give_same_bits "weights differ between ranks|the snapshots differ from byte")
    # Statistics are merged, and weights changed, while streams of other workers still add.
    ls_card_mutant(IMPATIENT card_data any_workers_give_same_bits_in_waves
      "waves, [0-9] workers, seed [0-9]: the snapshots differ from byte|'loss' is not finite")
    ls_card_mutant(LEAVES card_data any_workers_give_same_bits
      "free, [0-9] workers, seed [0-9]: the snapshots differ from byte")
    # What was recorded with other inputs, or for the statistics of another micro-batch, is played.
    ls_card_mutant(STALE ${data} ${differs})
    ls_card_mutant(FORMER card_data any_workers_give_same_bits_in_waves
      "the statistics of layer 'norm' are not finite")
    # Others: sums leave before the backward pass has added to them; what arrives is used before it
    # is there, or a rank ends before what it gave was read.
    ls_card_mutants(exchange ${CMAKE_SOURCE_DIR}/tests/cuda/test_exchange.c)
    foreach(name EARLY HASTY)
      ls_card_mutant(${name} exchange sums_and_weights*
        "numbers are wrong|of the host, which changed before it was made")
    endforeach()
  endif()
  target_link_libraries(ls_cuda_fake PUBLIC ls_cuda_grid)
  if(LS_CUDA_HAS_CUDNN)
    add_library(ls_cudnn_trial STATIC ${CMAKE_SOURCE_DIR}/tests/cuda/cudnn_trial.c)
    target_include_directories(ls_cudnn_trial PRIVATE ${CMAKE_SOURCE_DIR}/tests)
    target_link_libraries(ls_cudnn_trial PUBLIC ls_kernels ls_ops ls_cuda_host)
    ls_test(cuda_test_cudnn ${CMAKE_SOURCE_DIR}/tests/cuda/test_cudnn.c ls_cudnn_trial ls_kernels
      ls_ops ls_cuda_host ls_cuda_fake)
    # Mutants: engines whose sums have another order each time are taken; those that round operands in
    # fp32; a stream is never named; what addresses were given in is left; graphs are made with the
    # handle of a thread; a workspace is too small.
    ls_card_mutants(cudnn ${CMAKE_SOURCE_DIR}/tests/cuda/test_cudnn.c ls_cudnn_trial ls_kernels ls_ops)
    ls_card_mutant(UNSURE cudnn fp32_is_computed* "gives other bits each time")
    ls_card_mutant(TENSOR cudnn fp32_is_computed* "numbers are wrong")
    ls_card_mutant(STREAMLESS cudnn the_first_engine* "in the default stream")
    ls_card_mutant(LITTER cudnn the_first_engine* "descriptors of cuDNN are left")
    ls_card_mutant(BORROWED cudnn plans_outlive* "the plan's graph was made with is gone")
    ls_card_mutant(CRAMPED cudnn the_first_engine* "end behind their allocation")
    ls_test(cuda_test_cudnn_real ${CMAKE_SOURCE_DIR}/tests/cuda/test_cudnn_real.c ls_cuda_host
      ${LS_CUDNN_LIBRARY})
    target_link_options(cuda_test_cudnn_real PRIVATE -Wl,--wrap=cudnnBackendSetAttribute)
  endif()
  ls_test(cuda_test_fake ${CMAKE_SOURCE_DIR}/tests/cuda/test_fake.c ls_cuda_host ls_cuda_fake)
  ls_test(cuda_test_card ${CMAKE_SOURCE_DIR}/tests/cuda/test_card.c ls_cuda_host ls_cuda_fake)
  ls_test(cuda_test_layouts ${CMAKE_SOURCE_DIR}/tests/cuda/test_layouts.c ls_kernels ls_ops
    ls_cuda_host ls_cuda_fake)
  ls_test(cuda_test_ops ${CMAKE_SOURCE_DIR}/tests/cuda/test_ops.c ls_kernels ls_ops ls_cuda_host
    ls_cuda_fake)
endif()

# ---- The module -------------------------------------------------------------------------------------

# ls_cuda_module(TARGET SOURCES...): its one function is all that others see of it, and its own copies of
# src/base, src/ir and src/device are hidden (src/device/module.h).
function(ls_cuda_module name)
  add_library(${name} MODULE ${CMAKE_SOURCE_DIR}/src/ops/cuda/module/module.c ${LS_INTERFACE} ${ARGN})
  target_link_options(${name} PRIVATE -Wl,-Bsymbolic -Wl,--exclude-libs,ALL -Wl,--as-needed)
  if(NOT LOCKSTEP_SANITIZE)
    target_link_options(${name} PRIVATE -Wl,--no-undefined)
  endif()
  target_link_libraries(${name} PRIVATE ls_cuda_host)
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME lockstep_cuda)
endfunction()

# The kernels as objects, by nvcc itself, so that this needs no more of CMake than a C++ compiler. The
# flags are part of the numbers: no contraction, denormals flushed, divisions and roots rounded rightly.
# There is code for sm_80 (which sm_86 and sm_89 run, too) and sm_90, and PTX for what comes after.
function(ls_cuda_kernels variable)
  set(objects "")
  foreach(kernel ${kernels})
    get_filename_component(stem ${kernel} NAME_WE)
    set(object ${CMAKE_BINARY_DIR}/cuda/${stem}.o)
    add_custom_command(OUTPUT ${object}
      COMMAND ${CMAKE_C_COMPILER_LAUNCHER} ${CUDAToolkit_NVCC_EXECUTABLE} -c -std=c++17
              -ccbin=${CMAKE_CXX_COMPILER} -gencode arch=compute_80,code=sm_80
              -gencode arch=compute_90,code=sm_90 -gencode arch=compute_90,code=compute_90
              -I${CMAKE_SOURCE_DIR}/src -I${CMAKE_SOURCE_DIR}/include
              -fmad=false -ftz=true -prec-div=true -prec-sqrt=true --Werror all-warnings
              -Xcompiler=-O2,-fPIC,-fvisibility=hidden,-Wall,-Wextra
              -MD -MF ${object}.d -o ${object} ${kernel}
      DEPENDS ${kernel} DEPFILE ${object}.d VERBATIM COMMENT "Building CUDA object cuda/${stem}.o")
    list(APPEND objects ${object})
  endforeach()
  set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  set(${variable} ${objects} PARENT_SCOPE)
endfunction()

set(LS_CUDA_BUILDS FALSE)
if(LOCKSTEP_CUDA STREQUAL "OFF")
  # as was said
elseif(NOT CUDAToolkit_FOUND OR NOT CUDAToolkit_NVCC_EXECUTABLE)
  ls_cuda_lacks("CUDA's toolkit (nvcc and its headers) was not found: CUDAToolkit_ROOT says where it is")
elseif(NOT CMAKE_CXX_COMPILER)
  ls_cuda_lacks("there is no C++ compiler, which nvcc needs")
elseif(NOT TARGET CUDA::cudart_static)
  ls_cuda_lacks("the toolkit in ${CUDAToolkit_LIBRARY_DIR} has no libcudart_static.a")
elseif(LOCKSTEP_CUDA STREQUAL "AUTO" AND (LOCKSTEP_SANITIZE OR LOCKSTEP_FUZZ OR LOCKSTEP_WERROR))
  ls_cuda_lacks("builds for checks do without it")
else()
  set(LS_CUDA_BUILDS TRUE)
endif()

if(LS_CUDA_BUILDS)
  ls_cuda_kernels(objects)
  ls_cuda_module(lockstep_cuda ${objects})
  # The static runtime: the module needs no libcudart.so of one version, finds the driver by itself when
  # it runs, and says what is wrong with it where it is missing or old.
  target_link_libraries(lockstep_cuda PRIVATE CUDA::cudart_static)
  set(has "")
  foreach(library ${LS_CUDA_LIBRARIES})
    if(LS_CUDA_HAS_${library})
      target_link_libraries(lockstep_cuda PRIVATE ${LS_${library}_LIBRARY})
      string(APPEND has ", ${library}")
    endif()
  endforeach()
  set_target_properties(lockstep_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
                        INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS lockstep_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/lockstep COMPONENT cuda
          OPTIONAL)
  message(STATUS "Building the device of NVIDIA's cards with CUDA ${CUDAToolkit_VERSION}${has}")
  add_test(NAME cuda_module COMMAND bash ${CMAKE_SOURCE_DIR}/tests/cuda/module.sh)
  # Tests of kernels for a machine with a card, which `./run card` builds and runs there.
  add_custom_target(cuda_card_tests)
  foreach(test ops layouts)
    add_executable(cuda_card_${test} EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/tests/cuda/test_${test}.c
                   ${CMAKE_SOURCE_DIR}/tests/cuda/card/no_fake.c ${objects})
    get_target_property(links lockstep_cuda LINK_LIBRARIES)
    target_link_libraries(cuda_card_${test} PRIVATE ls_support ls_kernels ls_ops ${links})
    set_target_properties(cuda_card_${test} PROPERTIES LINKER_LANGUAGE CXX
                          RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    add_dependencies(cuda_card_tests cuda_card_${test})
  endforeach()
elseif(NOT LOCKSTEP_CUDA STREQUAL "OFF")
  add_test(NAME cuda_nvcc COMMAND bash ${CMAKE_SOURCE_DIR}/tests/cuda/nvcc.sh)
endif()
foreach(test cuda_module cuda_nvcc)
  if(TEST ${test})
    set_tests_properties(${test} PROPERTIES TIMEOUT ${LS_TEST_TIMEOUT} SKIP_RETURN_CODE 77
      ENVIRONMENT "${LS_TEST_ENVIRONMENT}")
  endif()
endforeach()

# The stand-in, and scripts that run the whole program on it.
if(TARGET ls_cuda_host AND TARGET lockstep_program)
  ls_stand_in(ls_cuda_begin ${CMAKE_SOURCE_DIR}/tests/cuda/standin.cc)
  ls_cuda_module(ls_cuda_standin $<TARGET_OBJECTS:ls_cuda_begin>)
  target_link_libraries(ls_cuda_standin PRIVATE ls_cuda_fake)
  target_compile_definitions(ls_cuda_standin PRIVATE lockstep_device_module=ls_standin_module)
  set(folder ${CMAKE_BINARY_DIR}/tests/standin)
  set_target_properties(ls_cuda_standin PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${folder})
  file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/cuda/*.sh)
  list(FILTER scripts EXCLUDE REGEX "/(nvcc|module|scene)\\.sh$")
  foreach(script ${scripts})
    get_filename_component(stem ${script} NAME_WE)
    add_test(NAME cuda_${stem} COMMAND bash ${script})
    set_tests_properties(cuda_${stem} PROPERTIES TIMEOUT ${LS_TEST_TIMEOUT} SKIP_RETURN_CODE 77
      ENVIRONMENT "${LS_TEST_ENVIRONMENT};LOCKSTEP_CUDA_MODULE=${folder}/liblockstep_cuda.so")
  endforeach()
endif()

get_property(targets DIRECTORY PROPERTY BUILDSYSTEM_TARGETS)
list(REMOVE_ITEM targets ${others} cuda_card_tests cuda_card_ops cuda_card_layouts)
add_custom_target(cards)
if(targets)
  set_target_properties(${targets} PROPERTIES EXCLUDE_FROM_ALL ON)
  add_dependencies(cards ${targets} lockstep_program)
endif()
if(LS_CUDA_BUILDS AND (LOCKSTEP_CUDA STREQUAL "ON" OR EXISTS /dev/nvidiactl))
  set_target_properties(lockstep_cuda PROPERTIES EXCLUDE_FROM_ALL OFF)
endif()
get_property(tests DIRECTORY PROPERTY TESTS)
list(REMOVE_ITEM tests ${other_tests})
if(tests)
  set_tests_properties(${tests} PROPERTIES LABELS cards)
endif()
