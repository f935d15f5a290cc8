# The loops of src/ops/cpu/vector, compiled once per instruction set; see src/ops/cpu/isa.h. None
# of the sets brings FMA instructions along that the compiler could put in: the bits are the same.
file(GLOB vector_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ops/cpu/vector/*.c)
set(vector_sets generic)
set(vector_flags_generic "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  list(APPEND vector_sets sse41 avx2 avx512)
  set(vector_flags_sse41 -msse4.1)
  set(vector_flags_avx2 -mavx2)
  set(vector_flags_avx512 -mavx512f -mavx512dq -mavx512bw -mavx512vl -mprefer-vector-width=512)
endif()
set(vector_modules "")
if(vector_sources)
  foreach(set ${vector_sets})
    set(vector_target ls_vector_${set})
    add_library(${vector_target} OBJECT ${vector_sources})
    target_link_libraries(${vector_target} PRIVATE ls_flags)
    target_include_directories(${vector_target} SYSTEM PRIVATE ${SLEEF_INCLUDE})
    target_compile_definitions(${vector_target} PRIVATE LS_ISA=${set})
    # Loops must become vectors in every build but one made for the debugger.
    target_compile_options(${vector_target} PRIVATE ${vector_flags_${set}}
                           $<$<NOT:$<CONFIG:Debug>>:-O3>)
    if(LOCKSTEP_SANITIZE OR LOCKSTEP_FUZZ) # instrumented loops cannot all be vectors
      target_compile_options(${vector_target} PRIVATE $<$<C_COMPILER_ID:Clang>:-Wno-pass-failed>)
      # Where gcc 12 moves a frame off the stack to detect its use after return, it aligns it to 32
      # bytes only, and stores of 64-byte registers fault.
      target_compile_options(${vector_target} PRIVATE
                             $<$<C_COMPILER_ID:GNU>:--param=asan-use-after-return=0>)
    endif()
    target_sources(ls_ops_cpu PRIVATE $<TARGET_OBJECTS:${vector_target}>)
    list(APPEND vector_modules ${vector_target})
  endforeach()
endif()
set(LS_VECTOR_MODULES ${vector_modules} CACHE INTERNAL "")
