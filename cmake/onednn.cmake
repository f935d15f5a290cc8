# oneDNN 2.6 or later, or 3.x: Debian's, or another one under DNNL_ROOT or CMAKE_PREFIX_PATH (its
# include and lib folders), whose CPU runtime is gcc's OpenMP or sequential.
set(DNNL_ROOT "" CACHE PATH "Where oneDNN is, if not in the system's folders")
find_path(DNNL_INCLUDE dnnl.h HINTS ${DNNL_ROOT} PATH_SUFFIXES include REQUIRED)
find_library(DNNL_LIBRARY dnnl HINTS ${DNNL_ROOT} PATH_SUFFIXES lib lib64 REQUIRED)

# The version of the headers, which must be the library's.
file(STRINGS ${DNNL_INCLUDE}/oneapi/dnnl/dnnl_version.h ls_dnnl_lines
     REGEX "define DNNL_VERSION_(MAJOR|MINOR) ")
string(REGEX REPLACE ".*MAJOR +([0-9]+).*" "\\1" LS_DNNL_MAJOR "${ls_dnnl_lines}")
string(REGEX REPLACE ".*MINOR +([0-9]+).*" "\\1" LS_DNNL_MINOR "${ls_dnnl_lines}")
file(REAL_PATH ${DNNL_LIBRARY} ls_dnnl_real)
if(ls_dnnl_real MATCHES "\\.so\\.([0-9]+)" AND NOT CMAKE_MATCH_1 EQUAL LS_DNNL_MAJOR)
  message(FATAL_ERROR "oneDNN's headers in ${DNNL_INCLUDE} are of version ${LS_DNNL_MAJOR}, "
                      "but ${ls_dnnl_real} is another one; DNNL_ROOT says where both are")
endif()
if(LS_DNNL_MAJOR LESS 2 OR LS_DNNL_MAJOR GREATER 3 OR
   (LS_DNNL_MAJOR EQUAL 2 AND LS_DNNL_MINOR LESS 6))
  message(FATAL_ERROR "oneDNN ${LS_DNNL_MAJOR}.${LS_DNNL_MINOR} is not supported; 2.6 or later, "
                      "or 3.x, is")
endif()
