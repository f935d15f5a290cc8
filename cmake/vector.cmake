# The loops of src/ops/cpu/vector, compiled once per instruction set; see src/ops/cpu/isa.h. None
# of the sets brings FMA instructions along that the compiler could put in: the bits are the same.
# Those of src/ops/cpu/avx512_bf16 and src/ops/cpu/amx are compiled for AVX-512 with these beside it.
file(GLOB vector_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ops/cpu/vector/*.c)
file(GLOB avx512_bf16_sources CONFIGURE_DEPENDS
  ${CMAKE_SOURCE_DIR}/src/ops/cpu/avx512_bf16/*.c)
file(GLOB amx_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ops/cpu/amx/*.c)
set(vector_sets generic)
set(vector_flags_generic ${LS_PLAIN_OPTIONS}) # few processors are without AVX2
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  list(APPEND vector_sets avx2 avx512)
  set(vector_flags_avx2 -mavx2)
  set(vector_flags_avx512 -mavx512f -mavx512dq -mavx512bw -mavx512vl -mprefer-vector-width=512)
  include(CheckCCompilerFlag)
  check_c_compiler_flag(-mavx512bf16 LS_COMPILER_HAS_AVX512_BF16)
  check_c_compiler_flag("-mamx-tile -mamx-bf16" LS_COMPILER_HAS_AMX)
endif()
set(vector_modules "")

# ls_vector(NAME ISA SOURCES FLAGS): an object library, which becomes a part of ls_ops_cpu.
function(ls_vector name isa sources flags)
  add_library(${name} OBJECT ${sources})
  target_link_libraries(${name} PRIVATE ls_flags)
  target_include_directories(${name} SYSTEM PRIVATE ${SLEEF_INCLUDE})
  target_compile_definitions(${name} PRIVATE LS_ISA=${isa})
  # Loops must become vectors in every build but one made for the debugger.
  target_compile_options(${name} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O3> ${flags})
  if(LOCKSTEP_SANITIZE OR LOCKSTEP_FUZZ) # instrumented loops cannot all be vectors
    target_compile_options(${name} PRIVATE $<$<C_COMPILER_ID:Clang>:-Wno-pass-failed>)
    # Where gcc 12 moves a frame off the stack to detect its use after return, it aligns it to 32
    # bytes only, and stores of 64-byte registers fault.
    target_compile_options(${name} PRIVATE
                           $<$<C_COMPILER_ID:GNU>:--param=asan-use-after-return=0>)
  endif()
  target_sources(ls_ops_cpu PRIVATE $<TARGET_OBJECTS:${name}>)
  set(vector_modules ${vector_modules} ${name} PARENT_SCOPE)
endfunction()

foreach(set ${vector_sets})
  ls_vector(ls_vector_${set} ${set} "${vector_sources}" "${vector_flags_${set}}")
endforeach()
if(LS_COMPILER_HAS_AVX512_BF16)
  ls_vector(ls_avx512_bf16 avx512 "${avx512_bf16_sources}" "${vector_flags_avx512};-mavx512bf16")
  target_compile_definitions(ls_ops_cpu PRIVATE LS_AVX512_BF16)
endif()
if(LS_COMPILER_HAS_AMX)
  ls_vector(ls_amx avx512 "${amx_sources}" "${vector_flags_avx512};-mamx-tile;-mamx-bf16")
  target_compile_definitions(ls_ops_cpu PRIVATE LS_AMX)
endif()
set(LS_VECTOR_MODULES ${vector_modules} CACHE INTERNAL "")
