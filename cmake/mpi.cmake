# Modules that speak MPI, one for each library that is found: liblockstep_openmpi.so,
# liblockstep_mpich.so; liblockstep_mpi.so for one that is no relative of these. They lie beside the
# program and are loaded when a launcher has started it (src/transport/launch.c); nothing else of
# Lockstep needs MPI. MPI's compilers only say where it is: the project's own compiles.
include(GNUInstallDirs)
set(LOCKSTEP_MPICC "" CACHE STRING
    "MPI's compilers, one for each library to build a module for; empty: those that are found")

# Where src/base/module.c looks for them.
set(modules ${CMAKE_INSTALL_FULL_LIBDIR}/lockstep)
file(RELATIVE_PATH modules_from_programs ${CMAKE_INSTALL_FULL_BINDIR} ${modules})
set_source_files_properties(src/base/module.c PROPERTIES COMPILE_DEFINITIONS
  "LS_MODULE_FOLDER=\"${modules}\";LS_MODULES_FROM_PROGRAMS=\"${modules_from_programs}\"")

if(LOCKSTEP_FUZZ)
  return()
endif()

# ls_mpi_kind(VARIABLE FLAGS...): openmpi, mpich or mpi, by what mpi.h defines; empty: no mpi.h.
function(ls_mpi_kind variable)
  set(source ${CMAKE_BINARY_DIR}/mpi_kind.c)
  file(WRITE ${source} "#include <mpi.h>
#if MPI_VERSION < 3
#error older than version 3
#elif defined(OPEN_MPI)
kind=openmpi
#elif defined(MPICH_VERSION) || defined(MPICH_NAME)
kind=mpich
#else
kind=mpi
#endif
")
  execute_process(COMMAND ${CMAKE_C_COMPILER} ${ARGN} -E ${source} OUTPUT_VARIABLE text
                  RESULT_VARIABLE result ERROR_QUIET)
  set(${variable} "" PARENT_SCOPE)
  if(result EQUAL 0 AND text MATCHES "kind=([a-z]+)")
    set(${variable} ${CMAKE_MATCH_1} PARENT_SCOPE)
  endif()
endfunction()

function(ls_mpi_module compiler)
  execute_process(COMMAND ${compiler} -show OUTPUT_VARIABLE shown RESULT_VARIABLE result
                  ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  separate_arguments(shown UNIX_COMMAND "${shown}")
  set(includes ${shown})
  list(FILTER includes INCLUDE REGEX "^-I")
  ls_mpi_kind(kind ${includes})
  if(NOT result EQUAL 0 OR NOT kind)
    message(WARNING "${compiler} is no compiler of an MPI library of version 3 or later")
    return()
  elseif(TARGET lockstep_${kind})
    return()
  endif()
  set(links ${shown})
  list(FILTER links INCLUDE REGEX "^(-L|-l|-Wl,)")
  list(TRANSFORM includes REPLACE "^-I" "")
  add_library(lockstep_${kind} MODULE ${CMAKE_SOURCE_DIR}/src/transport/mpi/mpi_transport.c)
  target_include_directories(lockstep_${kind} SYSTEM PRIVATE ${includes})
  target_link_libraries(lockstep_${kind} PRIVATE ls_flags ${links})
  set_target_properties(lockstep_${kind} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  install(TARGETS lockstep_${kind} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/lockstep)
  message(STATUS "Building a module for MPI: ${kind}, of ${compiler}")
endfunction()

set(compilers ${LOCKSTEP_MPICC})
if(NOT compilers)
  # Searched for anew each time: packages come and go.
  foreach(name mpicc.openmpi mpicc.mpich)
    unset(LS_FOUND_MPICC CACHE)
    find_program(LS_FOUND_MPICC NAMES ${name})
    if(LS_FOUND_MPICC)
      list(APPEND compilers ${LS_FOUND_MPICC})
    endif()
  endforeach()
endif()
if(NOT compilers)
  unset(LS_FOUND_MPICC CACHE)
  find_program(LS_FOUND_MPICC NAMES mpicc)
  if(LS_FOUND_MPICC)
    set(compilers ${LS_FOUND_MPICC})
  endif()
endif()
foreach(compiler ${compilers})
  ls_mpi_module(${compiler})
endforeach()
if(NOT compilers)
  message(STATUS "No MPI library was found: training on several machines is left out")
endif()
