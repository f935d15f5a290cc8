# ls_module(FOLDER USES...): a static library of all .c files of src/FOLDER; of ops/cpu also those
# in bf16/ (and in vector/, avx512_bf16/ and amx/, which cmake/vector.cmake compiles).
add_library(ls_flags INTERFACE)
target_compile_definitions(ls_flags INTERFACE _GNU_SOURCE LOCKSTEP_VERSION="${PROJECT_VERSION}")
target_include_directories(ls_flags INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include
                           ${CMAKE_BINARY_DIR}/generated)
# Some options change results and leave no macro behind that src/base/arithmetic.h could see.
foreach(flags "${CMAKE_C_FLAGS}" "${CMAKE_C_FLAGS_${CMAKE_BUILD_TYPE}}" "$ENV{CFLAGS}")
  if(flags MATCHES "-Ofast|-ffast-math|-funsafe-math|-fassociative-math|-freciprocal-math|-ffinite-math|-fno-signed-zeros|-mfpmath=387|-fsingle-precision-constant")
    message(FATAL_ERROR "These compiler flags let results change: ${CMAKE_MATCH_0}; leave them out")
  endif()
endforeach()
# No contraction: a*b+c is two roundings unless the source says fma, with every compiler.
target_compile_options(ls_flags INTERFACE -Wall -Wextra -Wshadow -Wstrict-prototypes
  -Wmissing-prototypes -Wvla -Wundef -Wpointer-arith -Wwrite-strings -ffp-contract=off
  -fno-math-errno -fno-trapping-math)
if(LOCKSTEP_WERROR)
  target_compile_options(ls_flags INTERFACE -Werror)
endif()
if(LOCKSTEP_SANITIZE)
  target_compile_options(ls_flags INTERFACE -fsanitize=${LOCKSTEP_SANITIZE}
    -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(ls_flags INTERFACE -fsanitize=${LOCKSTEP_SANITIZE})
endif()
if(LOCKSTEP_FUZZ)
  target_compile_options(ls_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
target_link_libraries(ls_flags INTERFACE Threads::Threads m)

# Folders without loops over the numbers of a net are not optimized as far: they are most of the
# sources.
set(LS_PLAIN_FOLDERS text schema ir layers graph plan observe transport snapshot onnx solver report
    sweep inspect api)
set(LS_PLAIN_OPTIONS "")
set(LS_TEST_OPTIONS "")
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND CMAKE_C_FLAGS_RELEASE MATCHES "-O3")
  set(LS_PLAIN_OPTIONS -O2)
  set(LS_TEST_OPTIONS -O1)
endif()

set(LS_MODULES "" CACHE INTERNAL "")
function(ls_module folder)
  string(REPLACE "/" "_" name ${folder})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*.c)
  if(folder STREQUAL "base")
    set(links ls_flags ZLIB::ZLIB PkgConfig::HDF5 ${SLEEF_LIBRARY})
  elseif(folder STREQUAL "text")
    set(links PkgConfig::PCRE2 PkgConfig::UTF8PROC)
  elseif(folder STREQUAL "schema")
    set(links PkgConfig::PROTOBUF_C)
    set(generated ${CMAKE_BINARY_DIR}/generated/lockstep.pb-c)
    set(names ${CMAKE_BINARY_DIR}/generated/lockstep_names.h)
    add_custom_command(OUTPUT ${generated}.c ${generated}.h ${names}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/generated
      COMMAND ${PROTOC_C} --c_out=${CMAKE_BINARY_DIR}/generated -I${CMAKE_SOURCE_DIR}/proto
              ${CMAKE_SOURCE_DIR}/proto/lockstep.proto
      COMMAND ${CMAKE_COMMAND} -DGENERATED=${generated} -DNAMES=${names}
              -P ${CMAKE_SOURCE_DIR}/cmake/protobuf_c.cmake
      DEPENDS ${CMAKE_SOURCE_DIR}/proto/lockstep.proto ${CMAKE_SOURCE_DIR}/cmake/protobuf_c.cmake)
    list(APPEND sources ${generated}.c)
    set_source_files_properties(${generated}.c PROPERTIES COMPILE_OPTIONS -w)
  elseif(folder STREQUAL "onnx")
    set(links PkgConfig::PROTOBUF_C)
    set(generated ${CMAKE_BINARY_DIR}/generated/onnx.pb-c)
    add_custom_command(OUTPUT ${generated}.c ${generated}.h
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/generated
      COMMAND ${PROTOC_C} --c_out=${CMAKE_BINARY_DIR}/generated -I${CMAKE_SOURCE_DIR}/proto
              ${CMAKE_SOURCE_DIR}/proto/onnx.proto
      DEPENDS ${CMAKE_SOURCE_DIR}/proto/onnx.proto)
    list(APPEND sources ${generated}.c)
    set_source_files_properties(${generated}.c PROPERTIES COMPILE_OPTIONS -w)
  elseif(folder STREQUAL "ops/cpu")
    set(links ${DNNL_LIBRARY} ${SLEEF_LIBRARY} ls_openmp)
    file(GLOB bf16_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/bf16/*.c)
    list(APPEND sources ${bf16_sources})
  elseif(folder MATCHES "^ops/")
    set(links ${SLEEF_LIBRARY})
  elseif(folder STREQUAL "data")
    set(links ${LMDB_LIBRARY} JPEG::JPEG PNG::PNG ZLIB::ZLIB)
  elseif(folder STREQUAL "snapshot")
    set(links ZLIB::ZLIB)
    # Maps of names of weights are part of the library.
    file(GLOB maps CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/share/maps/*.map)
    set(generated ${CMAKE_BINARY_DIR}/generated/weight_maps.c)
    add_custom_command(OUTPUT ${generated}
      COMMAND ${CMAKE_COMMAND} -DOUTPUT=${generated} -DFOLDER=${CMAKE_SOURCE_DIR}/share/maps
              -P ${CMAKE_SOURCE_DIR}/cmake/weight_maps.cmake
      DEPENDS ${maps} ${CMAKE_SOURCE_DIR}/cmake/weight_maps.cmake)
    list(APPEND sources ${generated})
  else()
    set(links "")
  endif()
  if(NOT sources)
    return() # nothing here yet
  endif()
  add_library(ls_${name} STATIC ${sources})
  if(folder IN_LIST LS_PLAIN_FOLDERS)
    target_compile_options(ls_${name} PRIVATE ${LS_PLAIN_OPTIONS})
  endif()
  foreach(use ${ARGN})
    string(REPLACE "/" "_" use ${use})
    list(APPEND links ls_${use})
  endforeach()
  target_link_libraries(ls_${name} PUBLIC ${links} ls_flags)
  target_include_directories(ls_${name} SYSTEM PUBLIC ${DNNL_INCLUDE} ${SLEEF_INCLUDE}
                             ${LMDB_INCLUDE})
  set(LS_MODULES ${LS_MODULES} ls_${name} CACHE INTERNAL "")
  if(folder STREQUAL "ops/cpu")
    include(${CMAKE_SOURCE_DIR}/cmake/vector.cmake OPTIONAL)
  endif()
endfunction()

# ls_devices(USES...): a module for each folder of src/ops, which is a device and may include USES
# alone; then src/ops, whose table names them all.
function(ls_devices)
  file(GLOB folders RELATIVE ${CMAKE_SOURCE_DIR}/src CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ops/*)
  set(devices "")
  foreach(folder ${folders})
    if(IS_DIRECTORY ${CMAKE_SOURCE_DIR}/src/${folder} AND NOT folder STREQUAL "ops/cuda") # cmake/cuda.cmake
      ls_module(${folder} ${ARGN})
      list(APPEND devices ${folder})
    endif()
  endforeach()
  ls_module(ops base device ${devices})
  target_sources(ls_ops PRIVATE ${LS_INTERFACE})
endfunction()

# What a device that is loaded shares with the program, as a hash (src/device/module.h).
file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/base/*.h ${CMAKE_SOURCE_DIR}/src/ir/*.h
     ${CMAKE_SOURCE_DIR}/src/ir/*.def ${CMAKE_SOURCE_DIR}/src/device/*.h
     ${CMAKE_SOURCE_DIR}/include/lockstep/base.h)
list(JOIN headers "," list)
set(LS_INTERFACE ${CMAKE_BINARY_DIR}/generated/device_interface.h)
add_custom_command(OUTPUT ${LS_INTERFACE}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/generated
  COMMAND ${CMAKE_COMMAND} -DOUTPUT=${LS_INTERFACE} -DHEADERS=${list}
          -P ${CMAKE_SOURCE_DIR}/cmake/interface.cmake
  DEPENDS ${headers} ${CMAKE_SOURCE_DIR}/cmake/interface.cmake VERBATIM)
unset(headers)
unset(list)
