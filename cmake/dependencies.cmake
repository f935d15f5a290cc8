# The libraries that Lockstep stands on; all are packages of Debian 12 (oneDNN may be a newer one).
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
pkg_check_modules(PROTOBUF_C REQUIRED IMPORTED_TARGET libprotobuf-c)
# Regular expressions, and the properties and normal forms of Unicode, for tokenizers.
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
find_program(PROTOC_C NAMES protoc-c REQUIRED)
find_path(LMDB_INCLUDE lmdb.h REQUIRED)
find_library(LMDB_LIBRARY lmdb REQUIRED)
# Debian has HDF5 in several builds; the one without MPI is wanted.
pkg_search_module(HDF5 REQUIRED IMPORTED_TARGET hdf5-serial hdf5)
include(cmake/onednn.cmake)
find_path(SLEEF_INCLUDE sleef.h REQUIRED)
find_library(SLEEF_LIBRARY sleef REQUIRED)

# The kernel library brings gcc's OpenMP runtime along, which we only tell to use one thread. It
# must be the same one with every compiler: clang's own would be a second runtime that the kernel
# library does not listen to.
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  set(LS_GCC ${CMAKE_C_COMPILER})
else()
  find_program(LS_GCC NAMES gcc gcc-12 cc REQUIRED)
endif()
execute_process(COMMAND ${LS_GCC} -print-file-name=libgomp.so OUTPUT_VARIABLE LS_GOMP
                OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT IS_ABSOLUTE "${LS_GOMP}")
  message(FATAL_ERROR "${LS_GCC} has no libgomp.so: is its OpenMP runtime installed?")
endif()
add_library(ls_openmp INTERFACE)
target_include_directories(ls_openmp BEFORE INTERFACE ${CMAKE_SOURCE_DIR}/cmake/openmp)
target_link_libraries(ls_openmp INTERFACE ${LS_GOMP})
