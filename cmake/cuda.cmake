# The device of NVIDIA's cards. What its kernels compute is tested on the CPU, for which a C++
# compiler is enough; what calls CUDA needs the toolkit's headers, and is tested with a fake runtime.
include(CheckLanguage)
check_language(CXX)
find_package(CUDAToolkit QUIET)
find_path(LS_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ${NCCL_ROOT}/include)
if(CMAKE_CXX_COMPILER)
  enable_language(CXX)
endif()

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
  ls_stand_in(ls_cuda_immediate ${CMAKE_SOURCE_DIR}/tests/cuda/immediate.cc)
  target_link_libraries(ls_cuda_immediate PUBLIC ls_cuda_grid)
  ls_test(cuda_test_products ${CMAKE_SOURCE_DIR}/tests/cuda/test_products.c ls_kernels ls_ops
    ls_cuda_immediate)
  ls_test(cuda_test_contract ${CMAKE_SOURCE_DIR}/tests/cuda/test_contract.c ls_device
    ls_cuda_immediate)
endif()

if(CMAKE_CXX_COMPILER AND CUDAToolkit_FOUND)
  file(GLOB host CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ops/cuda/*.c)
  if(NOT LS_NCCL_INCLUDE) # cards exchange over the host's memory
    list(FILTER host EXCLUDE REGEX "/nccl\\.c$")
  endif()
  add_library(ls_cuda_host STATIC ${host})
  target_link_libraries(ls_cuda_host PUBLIC ls_device)
  target_include_directories(ls_cuda_host SYSTEM PUBLIC ${CUDAToolkit_INCLUDE_DIRS})
  file(GLOB fake CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/cuda/fake/*.cc)
  ls_stand_in(ls_cuda_fake ${fake})
  if(LS_NCCL_INCLUDE)
    foreach(target ls_cuda_host ls_cuda_fake)
      target_compile_definitions(${target} PUBLIC LS_CUDA_HAS_NCCL=1)
      target_include_directories(${target} SYSTEM PUBLIC ${LS_NCCL_INCLUDE})
    endforeach()
    ls_test(cuda_test_exchange ${CMAKE_SOURCE_DIR}/tests/cuda/test_exchange.c ls_cuda_host
      ls_cuda_fake)
    ls_test(cuda_test_card_ranks ${CMAKE_SOURCE_DIR}/tests/cuda/test_card_ranks.c ls_trainings
      ${LS_MODULES} ls_cuda_host ls_cuda_fake)
    target_link_options(cuda_test_card_ranks PRIVATE -Wl,--wrap=ls_device_find)
    # Mutants (cmake/mutants.cmake): sums leave before the backward pass has added to them; what
    # arrives is used before it is there.
    foreach(name EARLY HASTY)
      string(TOLOWER cuda_mutant_${name} mutant)
      ls_test(${mutant} ${CMAKE_SOURCE_DIR}/tests/cuda/test_exchange.c ls_cuda_host ls_cuda_fake)
      target_compile_definitions(${mutant} PRIVATE LS_MUTANT_${name}=1)
      target_sources(${mutant} PRIVATE ${CMAKE_SOURCE_DIR}/src/ops/cuda/nccl.c)
      set_tests_properties(${mutant} PROPERTIES
        ENVIRONMENT "${LS_TEST_ENVIRONMENT};LOCKSTEP_TEST_FILTER=sums_and_weights*"
        PASS_REGULAR_EXPRESSION "numbers are wrong")
    endforeach()
  endif()
  target_link_libraries(ls_cuda_fake PUBLIC ls_cuda_grid)
  ls_test(cuda_test_card ${CMAKE_SOURCE_DIR}/tests/cuda/test_card.c ls_cuda_host ls_cuda_fake)
  ls_test(cuda_test_ops ${CMAKE_SOURCE_DIR}/tests/cuda/test_ops.c ls_kernels ls_ops ls_cuda_host
    ls_cuda_fake)
endif()

add_test(NAME cuda_nvcc COMMAND bash ${CMAKE_SOURCE_DIR}/tests/cuda/nvcc.sh)
set_tests_properties(cuda_nvcc PROPERTIES TIMEOUT ${LS_TEST_TIMEOUT} SKIP_RETURN_CODE 77
  ENVIRONMENT "${LS_TEST_ENVIRONMENT}")
